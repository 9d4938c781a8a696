"""The checkers: one file for each group of related properties."""
