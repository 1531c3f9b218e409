"""The devices of ResourceSlices as arrays, and what a pod's claims request of them.

D = devices, K = kinds of devices, A = attributes that single devices have or that constraints name, S = sets of counters,
P = patterns of draws, Z = layouts of sets, E = cells, J = claims of several pods, N = capacity in node rows. Amounts are thousandths of a unit. A number of -1 means none.
"""

from __future__ import annotations

from scheduler.schema.handles import (
    Flags1,
    Flags2,
    Floats1,
    Floats2,
    Handle,
    Ints1,
    Ints2,
    Numbers1,
    Numbers2,
)


class Devices(Handle):
    """One row per device; the devices of a slice are neighbours, in their order."""

    kind: Numbers1  # [D] number of its kind: devices of one kind differ in attributes of their own alone
    owners: Numbers1  # [D] how many claims have it for themselves
    sharers: Numbers1  # [D] how many claims have a share of it
    reach: Numbers1  # [D] row of ``reaches``, -1: it can be used on every node that has it in its spans
    twin: Numbers1  # [D] the next row of the same device, in a ring: slices of two generations may have it; -1 for none
    cell: Numbers1  # [D] its first cell, -1 where nothing is consumed of it
    draws: (
        Numbers2  # [4, D] set of counters and pattern, twice: what it draws while it is allocated
    )
    values: Numbers2  # [A, D] number of the value of an attribute
    places: Ints1  # [2] the rows of ``values`` that say where a device is, see PLACE_*; -1 if no device says so
    shareable: Flags1  # [K] whether several claims may have a device of the kind
    n_cells: Ints1  # [K] how many capacities a shareable device of the kind has
    waits: Flags1  # [K] whether a bind waits until a device of the kind is ready
    sets: Ints2  # [4, S] first counter, number of counters, layout: -1 if its states are not known, and key of its state
    counters: Ints2  # [2, C] how much there is, and how much is drawn
    patterns: Ints2  # [3, P] first row and number of rows in ``pattern``, and by how much the key of a state grows
    pattern: Ints2  # [X, 2] place of the counter in its set, and amount
    layouts: Ints2  # [2, Z] first row and number of rows in ``room_keys``: the states of sets with equal counters and devices
    room_keys: (
        Ints1  # [W] states of a layout, in order: Σ used · KEY_FACTOR^(place + 1) mod KEY_PRIME
    )
    rooms: Floats2  # [3, W] in whole sets: the most that can still be cut, what fits if nothing else is cut, and what is drawn
    cells: Ints2  # [2, E] of each capacity of a shareable device: how much there is, and how much is consumed
    joint: Ints2  # [3, J] claims that several pods have: first row and number of rows in ``joint_holds``, and how many of those who have it are charged
    joint_holds: (
        Ints2  # [V, 3] device or cell, what of it is held (HOLD_DEVICE and so on), and the amount
    )
    spans_of: (
        Ints2  # [2, N] first row and number of rows in ``spans``: the devices of a node, in order
    )
    spans: Ints2  # [Y, 2] first device, and number of devices
    states: Ints1  # [N] number that nodes have in common whose devices are alike, see ``kernels/devices/device_states.py``; -1: none
    unsure: Flags1  # [N] not all pools of the node are known whole: no claim gets all devices of something there
    reaches: Flags2  # [M, N] the nodes on which devices can be used


# Positions in Devices.places.
PLACE_ROOT, PLACE_NUMA, N_PLACES = range(3)
# Positions in Devices.draws.
DRAWS = ((0, 1), (2, 3))
TOTAL, USED = 0, 1
SET_FIRST, SET_SIZE, SET_LAYOUT, SET_KEY = range(4)
ROOM, FITTING, DRAWN = range(3)
# Products of two of what is below the prime are exact.
KEY_PRIME, KEY_FACTOR = (1 << 31) - 1, 16807


class ClaimAsk(Handle):
    """What the pending claims of a pod request, compiled. L = leaves, R = requests, C = constraints, Y = picky leaves.

    A request takes the first of its leaves that can be had; the leaves of a request are neighbours.
    """

    leaves: Ints2  # [L, N_LEAF] see LEAF_*
    first: Ints1  # [R + 1] first leaf of each request
    may_have: Flags2  # [L, K] kinds of devices that a leaf may have
    fails: Flags2  # [L, K] kinds of which a selector cannot tell, by which first fit ends
    barred: Flags2  # [L, K] kinds of which a leaf that gets all devices gets none, so that it cannot be had: by taints
    picked: Flags2  # [Y, D] devices that a picky leaf may have
    consumes: Ints2  # [L, K] first place in ``amounts`` of what a leaf consumes of a shareable device, -1 for nothing
    amounts: Ints1  # by cell of the device
    constraints: Ints2  # [C, N_CONSTRAINT] see CONSTRAINT_*
    is_about: Flags2  # [C, L] the leaves whose devices a constraint is about
    policy: int  # which of several devices come first, see FIRST_FIT
    preferred: int  # the points of alternatives that the pod's other claims have got
    is_ranked: bool  # whether a request has alternatives
    by_state: bool  # whether nodes whose devices have one state are alike for it
    most: int  # so many devices are looked at for a node at most


# Positions in ClaimAsk.leaves: the claim; how many devices, 0 for all; whether it only looks at devices; a number that
# neighbouring leaves have in common if nothing tells them apart; the row of ``picked``, -1 for none; whether the
# request has this leaf alone; what an alternative is worth, 0 for what has no alternatives; and the row of the extended
# resource that the request stands for, -1 for none: it counts only where a class serves the resource.
(
    LEAF_CLAIM,
    LEAF_COUNT,
    LEAF_ADMIN,
    LEAF_GROUP,
    LEAF_PICKY,
    LEAF_ALONE,
    LEAF_WORTH,
    LEAF_RESOURCE,
    N_LEAF,
) = range(9)
# The claim, the row of Devices.values, and whether all values differ; else all are equal.
CONSTRAINT_CLAIM, CONSTRAINT_VALUES, CONSTRAINT_DISTINCT, N_CONSTRAINT = range(4)
# ClaimAsk.policy: devices in their order; those that lose least; the fullest; the emptiest.
FIRST_FIT, LEAST_LOSS, FULLEST, EMPTIEST = range(4)
# The search for a good choice may look at one device in so many of those at which the search for any choice may.
CHOOSING_PART = 8
# A power of two.
LOST_MOST = 1024
# The most devices of one claim, and of all claims of a pod.
CLAIM_MOST, POD_MOST = 32, 128
# Positions in Devices.joint.
JOINT_FIRST, JOINT_SIZE, JOINT_CHARGED = range(3)
# What Pods.holds has in HOLD_PART of what claims hold: a device, a share of a device, an amount of a cell; or all that a
# claim holds which several pods have, by its number.
HOLD_DEVICE, HOLD_SHARE, HOLD_CELL, HOLD_JOINT = -2, -3, -4, -5
# Instead of a number of devices: there are not enough, it was not found out within ``ClaimAsk.most``, or a selector failed.
TOO_FEW, NOT_KNOWN, FAILED = -1, -2, -3


class ClaimMemo(Handle):
    """What was found on nodes for one pod while nothing is charged, by the state of their devices. N = rows of nodes."""

    number: Ints1  # [2] the number of the pod at hand, and whether the memo is open
    known: Ints1  # [N] the number of the pod of which the state's entry is
    found: Ints1  # [N] what the search has returned
    figures: Floats2  # [N, N_FIGURES] see ``ClaimScratch.figures``


class ClaimScratch(Handle):
    """The working space of the search. M = most devices of a node, F = most devices of a pod."""

    local: Ints1  # [M] the devices of the node at hand, in order
    tried: Flags2  # [F, M] which of them were tried in each step
    leaf: Ints1  # [F] the leaf of each step
    nth: Ints1  # [F] which of the leaf's devices the step is for
    need: Ints1  # [F] how many devices the leaf gets
    pick: Ints1  # [F] the place in ``local`` of the device that was taken
    run: Ints1  # [F] the first of the steps before it whose leaves nothing tells apart from the step's own
    request: Ints1  # [F] the request of each step
    drawn: Ints1  # [counters of a set] what the device at hand draws
    lost_by: Ints2  # [LOST_MOST, 3] layout (-1: none), key of a state and pattern whose figure in ``lost`` is known
    lost: Floats1  # [LOST_MOST] what a set of counters loses by a draw
    left: Ints1  # [1] so many devices may still be looked at, for all nodes together
    n_local: Ints1  # [1] how many devices the node at hand has
    figures: Floats1  # [N_FIGURES] what the choice for the node at hand comes to, see FIGURE_*
    memo: ClaimMemo


# What the choice loses, in milli of a whole device; how many units the node has, how much of them was in use, and how much
# the choice takes; the points of its alternatives; see ``kernels/devices/claim_scores.py``.
FIGURE_LOSS, FIGURE_UNITS, FIGURE_USED, FIGURE_TAKEN, FIGURE_RANK, N_FIGURES = range(6)
