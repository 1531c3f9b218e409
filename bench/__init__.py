"""Benchmarks: each prints JSON and compares, in one run, with what it claims to beat."""
