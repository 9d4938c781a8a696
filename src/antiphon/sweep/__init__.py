"""One scenario with lists of values: every combination, under many seeds, and the figures of each run."""
