"""Reports to people and machines: events, conditions, statuses, metrics and probes."""
