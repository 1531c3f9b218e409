"""Whole GPUs as an extended resource: the node says how many, and the kubelet's plugin says which.

Nothing is written for them, and nobody tells one from another: they are counted with the other resources of
the node, and to formulas each of them is a card of ``CARD`` that is idle or taken.
"""

from __future__ import annotations

from scheduler.api import names

RESOURCE = names.GPU
# Core percent and MiB of what a whole GPU counts as; nobody says how much memory it has.
CARD = (100, 0)
