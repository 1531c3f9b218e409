"""Evenkeel: a scheduler for Kubernetes that picks the node and the GPUs on it.

Events change the columns of the engine, the engine returns decisions, a shell carries them out, and the results come
back as events. docs/architecture.md has the map of the rooms: which there are, what belongs in each, and which of them
a room may import.
"""
