"""Which processes are connected, and which of them count as senders and receivers (Berket98 §6)."""
