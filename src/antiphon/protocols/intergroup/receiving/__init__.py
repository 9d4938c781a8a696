"""The roles of processes that do not send, one file for each kind of delivery service (Berket00 §4.6 to 4.9)."""
