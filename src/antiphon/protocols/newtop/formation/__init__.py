"""Groups that are formed, joined, left and merged while they work (docs/spec/newtop.md 11)."""
