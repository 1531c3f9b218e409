"""What typical pods could still be given on nodes; ``modes/places.py`` makes it, ``kernels/modes/places.py`` reads it.

B = resources that bind, K = typical pods, C = cells of a table.
"""

from __future__ import annotations

import numpy as np

from scheduler.schema.handles import Floats1, Floats2, Handle, Ints1

# Rows beyond the resource matrix: what the cards of the node's pool have together, core percent and MiB.
OF_CORES, OF_MIB = -1, -2
# The most resources and typical pods that are looked at.
RESOURCES_MAX, TYPICAL_MAX = 8, 32
# Stands for 'any number' where a typical pod asks none of a resource.
ANY = 1e15
CELLS = 1024
# Rows of ``Scratch.room`` for what a pod asks, of the node at hand and of all nodes without devices; below each what
# it adds to shares in use.
ROOM_ASKED, ROOM_KEPT, ROOM_END = 3, 5, 7


class Places(Handle):
    """Of one sort of nodes; with no resource in it nothing is known, and every placement costs alike."""

    resources: Ints1  # [B] rows of the resource matrix, or OF_*
    per: Floats2  # [B, K] 1 / amount that a typical pod asks, 0 where it asks none
    beyond: (
        Floats2  # [B, K] ANY where it asks none, else what makes up for the last bit of a quotient
    )
    worth: Floats1  # [K] what a place for it is worth, in units
    price: Floats1  # [B] units of one of a resource
    level: Floats1  # [B] weight of a resource in how full and how even a node is; their sum is 1
    value: Floats2  # [B, C + 1] units of the best filling of an amount, in cells; [B, 0] before it is known
    cell: Floats1  # [B] cells of one of a resource
    most: Floats2  # [B, C + 1] the most that typical pods and the best filling come to, in cells of ``wide``
    wide: Floats1  # [B] cells of one of a resource in ``most``
    weights: Floats1  # [N_WEIGHTS] see below


# A step is worth so many units. Weights: FULL of a place, PART of the cube of a part of one, MIX of the best
# filling, REST of the value that is left, USED of the share that was in use, UNEVEN of the variance of used
# shares, SQUARE of the square of their mean; PACKED stands in for REST and USED where pods are to be packed.
STEP, FULL, PART, MIX, REST, USED, UNEVEN, SQUARE, PACKED, N_WEIGHTS = range(10)


def make_empty() -> Places:
    """Make places of which nothing is known."""
    weights = np.zeros(N_WEIGHTS)
    weights[STEP] = 1.0
    none, table = np.zeros(0), np.zeros((0, 0))
    return Places(
        np.zeros(0, np.int64), table, table, none, none, none, table, none, table, none, weights
    )
