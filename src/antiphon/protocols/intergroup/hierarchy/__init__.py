"""The control hierarchy: distances, stability and cuts (Berket00 ch. 2; docs/spec/intergroup.md 3)."""
