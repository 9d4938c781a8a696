"""Byte layouts of the Newtop frames."""
