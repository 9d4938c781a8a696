"""Which messages every process has, and the log that keeps the others (docs/spec/intergroup.md 4.5)."""
