"""The protocol families, one package each. The registry lists them."""
