"""Cores driven: effects carried out and applications told, the same way in the simulator, on sockets and in tests."""
