"""A file in the form of kube-scheduler's own, ``KubeSchedulerConfiguration`` of ``kubescheduler.config.k8s.io/v1``.

Belongs here: what kube-scheduler 1.37 accepts in such a file, its defaults, and how it merges both. A setting that
kube-scheduler accepts and Evenkeel does not have is refused by name. Does not belong here: Evenkeel's own file
(``config``), and what rules do with the settings.
"""
