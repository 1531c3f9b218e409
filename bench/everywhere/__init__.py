"""One table of all modes over all kinds of clusters: who is first where, and by how much."""
