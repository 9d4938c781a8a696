"""The four kinds of acknowledgments, one file each."""
