"""Disruption budgets: which pods they cover, and how many of these may go."""
