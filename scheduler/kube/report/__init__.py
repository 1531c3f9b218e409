"""Telling people and machines: events, conditions, statuses, metrics and probes."""
