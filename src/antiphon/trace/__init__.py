"""Traces of runs: the event schema, recorders, writers."""
