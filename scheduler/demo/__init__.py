"""The demo: four patterns on an embedded cluster, placed by the real operator over HTTP, and two modes compared.

Belongs here: what the demo shows and expects. Does not belong here: anything that schedules; the
operator runs as a process of its own, from the same command that users run.
"""
