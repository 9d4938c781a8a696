"""Streams, orders and delivery services: what the application of a process gets, and in which order."""
