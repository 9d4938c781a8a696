"""Algorithm A of the Notes: total order in two phases, and the takeover of lost originators."""
