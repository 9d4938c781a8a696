"""How fast ordered messages are on real sockets, beside what the same processes reach without any order."""
