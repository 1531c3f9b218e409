"""Leadership: the lease, and what a replica does between taking it and its first decision."""
