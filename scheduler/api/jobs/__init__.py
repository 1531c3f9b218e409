"""Jobs that wait in queues until they may start: what their pods will be, how they are started and stopped, and how they end.

Source of all rules: Kueue (2026-08), ``pkg/controller/jobframework`` and ``pkg/controller/jobs``.
"""
