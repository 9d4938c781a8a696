"""The multicasts of the lecture notes: reliable, FIFO, causal and total order, one file each (Notes)."""
