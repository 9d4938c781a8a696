"""Requests for missing messages and the repairs that answer them (Berket00 §3)."""
