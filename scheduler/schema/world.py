"""What kernels read and write beside a pod."""

from __future__ import annotations

import numpy as np

from scheduler.schema.columns import Demand, Scratch, Tables
from scheduler.schema.handles import Flags, Flags1, Handle, Ints, Ints1, Ints2


class World(Handle):
    """A cluster as it is judged for pods that ask one family of devices."""

    tables: Tables
    demand: Demand
    scratch: Scratch


class Run(Handle):
    """A run of K like pods to be placed, and where they went.

    The tables of the world have room for them. Q is at least the most picks that a pod of the shape can have.
    """

    moved: Ints1  # [k] rows that are to be looked at again before the first; this one is read
    chosen: int  # the row that the pods go to, -1: the best; likewise
    among: Flags1  # [N] the rows of which that is the best, [0]: of all; likewise
    wanted: Ints1  # [K] the row that each pod goes to if it fits there, [0]: the best row for each; likewise
    stops: Flags1  # [N] the rows after which nothing more is placed, [0]: none; likewise
    priority: Ints1  # [K] of each pod; likewise
    row: Ints1  # [K] node row
    pod: Ints1  # [K] row of the pod table
    n_picks: Ints1  # [K]
    card: Ints2  # [K, Q] card rows in pick order
    mib: Ints2  # [K, Q]
    cores: Ints2  # [K, Q]
    slot: Ints2  # [K, Q] container of the pick
    part: Ints2  # [K, Q] part of the card, NO_PART for the card itself
    n_devices: Ints1  # [K] how many devices its claims got
    device: Ints2  # [K, F] rows of these devices, in the order of the requests
    leaf: Ints2  # [K, F] the leaf of each, see ``ClaimAsk``


ANY_ROW = -1
# As ``Run.among``.
ANYWHERE: Flags = np.zeros(0, np.bool_)
# As ``Run.wanted``.
ANY_ROWS: Ints = np.zeros(0, np.int64)
# As ``Run.stops``.
NOWHERE: Flags = ANYWHERE
