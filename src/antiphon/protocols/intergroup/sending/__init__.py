"""The role of a sender: its rate, its window, and how it admits receivers (Berket00 §4.5, §4.7.1)."""
