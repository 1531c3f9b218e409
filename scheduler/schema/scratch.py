"""The working space of kernels; sizes that are not named there are those of ``columns``."""

from __future__ import annotations

from scheduler.schema.choice_scores import ChoiceScores
from scheduler.schema.devices import ClaimScratch
from scheduler.schema.handles import Floats1, Floats2, Handle, Ints1, Ints2, Singles1


class Scratch(Handle):
    """Working space, allocated once. M = most cards on a node, L = lanes of a block."""

    lanes: Floats1  # [LANES_END] one flat array behind the next four and the modes' working rows
    cap: Floats2  # [6, BLOCK]
    used: Floats2  # [6, BLOCK]
    ask: Floats2  # [6, BLOCK]
    out: Floats1  # [BLOCK]
    points: Ints1  # [BLOCK]
    rows: Ints1  # [BLOCK]
    changed: Ints1  # [1] the one row that a placement changes
    order: Ints1  # [M] cards of the node at hand in walking order
    held: Ints2  # [3, M] what sidecars and app containers placed so far hold
    peak: Ints2  # [3, M] the most that is held at once: what is charged
    card_score: Singles1  # [M]
    picks: Ints1  # [P] card rows picked, container by container
    pick_mib: Ints1  # [P] MiB and cores that are charged for the pick
    pick_cores: Ints1  # [P]
    pick_slot: Ints1  # [P] container of the pick
    pick_part: Ints1  # [P] part of the card that is picked, NO_PART for the card itself
    first: Ints1  # [2] FIRST_CARD, FIRST_PICK: the first card of the pool at hand, the first pick of the container at hand
    passing: Ints1  # [M] places in the pool of the cards that a container may have, in the order of the walk
    chosen: Ints1  # [M] places in ``passing``
    trial: Ints1  # [M] likewise, of the set that is looked at
    sums: Ints1  # [M] the sum of the scores of its first cards
    gains: Ints2  # [M, M], at most LINKED_MAX each: by how many of them there are: what each other card would add
    pairs: Ints2  # [M, M], likewise: the score of each pair of ``passing``
    cut: Ints1  # [M] the slots of each card that are in use with the pod
    only_numa: Ints1  # [1] the NUMA node of which alone devices may be taken, ANY_NUMA: of all
    holds: Ints2  # [2 P and what claims hold, N_HOLD] what the pod at hand holds, as ``Pods.holds``
    codes: Ints1  # [N_CARD_CODES] how many cards were refused for what
    n_picks: Ints1  # [1] how many picks there are, where a mode that knows cards made them
    free: Ints2  # [2, M] milli of cores and memory free on each card of the node at hand, 0 when closed
    states: Ints2  # [4, M + 1] distinct pairs of those that are not 0, how many cards are so, and of which kind
    was: Ints1  # [N_WAS] what the node at hand has without the pod, see WAS_*
    tried: Ints1  # [1] how many of its cards were tried, 0 for none, and
    cost: Floats1  # [1] what the best of them costs
    fits: Ints1  # [K] per typical pod: cards of the node at hand that will do
    frag: Ints1  # [K] and what is idle on those that will not
    fits_with: Ints1  # [K] likewise, with the pod
    frag_with: Ints1  # [K]
    served: Floats1  # [2] milli-GPU that CPU and the like serve there, before the pod and with it
    room: Floats2  # [ROOM_END, RESOURCES_MAX] what is free, its used share, 1 / what there is; see schema/places.py
    places: Floats1  # [TYPICAL_MAX] how many typical pods fit
    second: Ints1  # [1] the second objective of the node at hand, below ``ModeTerm.unit``
    choice: ChoiceScores
    claims: ClaimScratch
