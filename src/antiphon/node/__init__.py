"""A scenario with real processes and sockets on this machine."""
