"""Algorithms R, F and C of the Notes: multicasts in which every receiver relays what it receives."""
