"""Spark jobs over many runs: verification, and any work as tasks that can be resumed."""
