"""Kubernetes' judge of devices and ours, on expressions of upstream's, of our own, and on random ones."""
