"""Drives cores: carries out effects and informs applications, the same in the simulator, on sockets and in tests."""
