"""``evenkeel``: run | rerun | simulate | explain | replay | audit | demo | warm.

Belongs here: one file per command, with its flags and their meaning, and what commands have in common.
Does not belong here: deciding, reading or drawing anything, which the rooms below do.
"""

from scheduler.cli.app import app, main

__all__ = ["app", "main"]
