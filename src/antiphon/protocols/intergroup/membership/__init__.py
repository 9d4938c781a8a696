"""Who sends in a group: orderly changes, and the repair of the sender group after failures (Berket00 §5)."""
