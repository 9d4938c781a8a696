"""Asymmetric groups: one member numbers the messages of all (docs/spec/newtop.md 11.3)."""
