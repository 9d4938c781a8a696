"""Which view of a group is primary: dynamic voting with attempts (docs/spec/newtop.md 15)."""
