"""Programs that run beside a scheduler while it is measured, each a process of its own.

The null scheduler, which is measured too; what a kubelet, a provisioner of volumes and the users of a cluster
would do. Each does one thing, as fast as the API server lets it, and the same for every scheduler.
"""
