"""Evenkeel: a scheduler for Kubernetes that picks the node and the GPUs on it."""
