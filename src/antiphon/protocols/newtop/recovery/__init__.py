"""FIFO, lossless streams on a transport that loses, duplicates and reorders (docs/spec/newtop.md 4)."""
