"""What the checkers read: tables derived from the events of one run, computed once."""
