"""Flow control and the buffers that it bounds (Macedo95)."""
