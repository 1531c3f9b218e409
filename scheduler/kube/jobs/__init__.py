"""Jobs with a queue: each gets a workload, starts when that is admitted, and stops when it is evicted."""
