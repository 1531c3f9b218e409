"""One file for each family of scoring modes: what a placement is worth, in milli-points."""
