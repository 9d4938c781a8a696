"""How frames travel between processes."""
