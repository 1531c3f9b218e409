"""Who decides: the lease, and what comes between taking it and the first decision."""
