"""Statistics: what is measured of one run and of many."""
