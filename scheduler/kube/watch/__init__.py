"""Reads the cluster: lists and watches, and how each kind is read."""
