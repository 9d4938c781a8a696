"""Requests to a group and their answers (docs/spec/newtop.md 16)."""
