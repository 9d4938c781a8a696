"""Random Newtop scenarios for campaigns, one file for each kind."""
