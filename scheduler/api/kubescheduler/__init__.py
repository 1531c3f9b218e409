"""A file in the form of kube-scheduler's own, ``KubeSchedulerConfiguration`` of ``kubescheduler.config.k8s.io/v1``.

Belongs here: what kube-scheduler 1.37 takes in such a file, its defaults, and how it merges them with what is given.
What it takes and Evenkeel has not is refused, by name. Does not belong here: Evenkeel's own file (``config``), and what
rules do with what was said.
"""
