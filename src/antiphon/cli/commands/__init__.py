"""One file for each command of `antiphon`."""
