"""The arrays that kernels read and write: name, shape, type, unit.

N is the capacity in node rows (a multiple of ``BLOCK``), R in resources, Q in pools, D in cards, M in pods that
have a node, B = N / BLOCK.
Row numbers of -1 mean none.
"""

from __future__ import annotations

from scheduler.schema import handles, scratch
from scheduler.schema.card_parts import Carvings, Links, SlotCounters
from scheduler.schema.devices import ClaimAsk, Devices
from scheduler.schema.domains import Domains
from scheduler.schema.handles import (
    Flags1,
    Flags2,
    Floats1,
    Floats2,
    Handle,
    Handles,
    Ints1,
    Ints2,
    Numbers1,
)
from scheduler.schema.places import Places

Ints = handles.Ints
Flags = handles.Flags
Floats = handles.Floats

BLOCK = 64
N_DIMS = 6
# Rows of the resource matrix that are always there; of UNKNOWN, what no node offers, all is 0 for ever.
CPU, MEMORY, EPHEMERAL, PODS, UNKNOWN = 0, 1, 2, 3, 4
# First rows of the parts of Nodes.totals; resources come last, for a new one may be offered any time.
NONZERO_AT, REQUESTED_AT = 0, 2
# WHOLE: a whole card, in the unit of all scores that look at cards.
N_CARD_CODES, WHOLE = 15, 1000
# Pools.part: GPUs, MiB, and how a GPU is shared, as the place in plugin_parts.Way.
PART_GPUS, PART_MIB, PART_WAY, N_PART = range(4)
# The pool of those that have none: nothing is in it, nothing is ever charged to it.
NO_POOL = 0


class Pools(Handle):
    """One row per pool: the devices of one family that a driver allocates on one node; the first row is ``NO_POOL``.

    The driver gives the devices away one by one, as cards, or they are counted as a resource of the node. The pools of a
    node are neighbours, in the order of their families.
    """

    family: Ints1  # [Q] number of the resource by which pods ask for the devices, -1 of rows without a pool
    driver: Ints1  # [Q] number of the driver, see devices/table.py
    node: (
        Ints1  # [Q] node row, -1 of pools that belong to no single node, and of rows without a pool
    )
    generation: Ints1  # [Q] of such a pool: the version of its source; 0 of a node's pool
    carved: Flags1  # [Q] whether parts can be cut out of any of its cards
    complete: Flags1  # [Q] whether the source has said everything; of an incomplete pool no device is given away
    managed: Flags1  # [Q] the devices are given away one by one; else they are counted
    chooser: Ints1  # [Q] who chooses among them, see WALK
    resource: Ints1  # [Q] row of the resource matrix where they are counted
    start: Ints1  # [Q] row of the first card
    count: Ints1  # [Q] number of cards
    part: Floats2  # [N_PART, Q] what each device is where they are counted, see PART_*; 0 where it is unknown
    total: Ints2  # [3, Q] core percent, MiB and sharers
    used: Ints2  # [3, Q] likewise, sums over the cards; 0 where they are counted


# Pools.chooser: see kernels/devices/choose.py.
WALK, ISLANDS, GROUPS, TOGETHER, NETWORKS, PAIRS, SPANS, ZONES = 0, 1, 2, 3, 4, 5, 6, 7


class Nodes(Handle):
    """One row per node. What pods add up to is written by ``kernels/charge.py`` alone."""

    valid: Flags1  # [N] the row holds a node that may be looked at
    rank: Ints1  # [N] place of the node's name in sorted order: ties go to the lowest
    allocatable: Ints2  # [R, N] milli-CPU, bytes, counts
    by_class: Flags2  # [R, N] devices of a class serve the resource, so claims say whether there are enough
    totals: Ints2  # [REQUESTED_AT + R, N] what pods add up to; the next two are parts of it
    requested: Ints2  # [R, N] as allocatable, of bound and assumed pods
    nonzero: (
        Ints2  # [2, N] milli-CPU and bytes with kube-scheduler's defaults for those who ask none
    )
    has_gpu: Flags1  # [N] the node has devices of any family
    first_pool: Ints1  # [N] row of its first pool, NO_POOL when it has none
    n_pools: Ints1  # [N] number of its pools
    shared: Ints1  # [S] pools that belong to no single node
    reach: Flags2  # [S, N] the nodes whose pods may get their devices
    pools: Pools


class Cards(Handle):
    """One row per card; the cards of a pool are neighbours, sorted by index."""

    total: Ints2  # [3, D] core percent, MiB, sharers
    used: Ints2  # [3, D]
    milli: Floats2  # [2, D] 1000 / total of cores and MiB, 0 where the total is 0
    healthy: Flags1  # [D]
    cordoned: Flags1  # [D]
    mig: Flags1  # [D]
    carving: Numbers1  # [D] what can be cut out of it, 0 where nothing is known of that
    counter: Numbers1  # [D] the counter of its first bit, see Carvings
    cut: Ints1  # [D] its bits that are in use
    numa: Numbers1  # [D]
    position: Numbers1  # [D] the card's index on its node
    model: Numbers1  # [D] interned
    mode: Numbers1  # [D] interned
    uuid: Numbers1  # [D] interned
    pool: Numbers1  # [D] its pool
    link: Numbers1  # [D] where its scores begin in ``links``, -1 where none are known
    links: Links
    carvings: Carvings
    slots: SlotCounters
    group: Numbers1  # [D] the place in its pool of the first card of its group, -1 of cards without a group
    marks: Ints1  # [D] how many pods of each kind share it, see schema/marks.py
    by_number: Ints2  # [2, D] what a node policy adds for as many cards as come up to this one: binpack, spread
    kind: Numbers1  # [D] what a card of its totals is to formulas, see state/cards.py; 0 is a whole GPU that is counted


# First index of Pools.total, Cards.total and their used counterparts.
CORES, MIB, SLOTS = 0, 1, 2

# What Pods.start is of a pod that has not started.
NOT_STARTED = 1 << 62
# Positions in Pods.free: the first free row and the end of those in use; the end of the rows of holds in use,
# and the first free run of 1, 2, 4, 8 … of these. -1 is none; a free row or run tells the next.
FREE_ROW, END_ROW, END_HOLDS, FREE_RUN, N_FREE = 0, 1, 2, 3, 35


class Pods(Handle):
    """One row per pod that has a node: what decisions read of it, and what it holds."""

    node: Ints1  # [M] node row it is charged to; -1: it is charged nowhere, or the row is free
    priority: Ints1  # [M]
    start: Ints1  # [M] seconds since 1970 at which the kubelet took it up, or NOT_STARTED
    charge: Ints1  # [M] number of its charge
    held: Ints2  # [2, M] first row and number of rows in ``holds``; of a free row the next free one, and 0
    holds: Ints2  # [H, N_HOLD] see HOLD_*
    free: Ints1  # [N_FREE] see FREE_*


# Positions in Pods.holds: card row, and core percent, MiB and sharers that are held of it; and the part that is held of
# a card that is cut, as its row in Carvings.parts, NO_PART in rows of figures. Of claims see schema/devices.py.
HOLD_CARD, HOLD_CORES, HOLD_MIB, HOLD_SLOTS, HOLD_PART, N_HOLD = range(6)
NO_PART = -1


class Charges(Handle):
    """What a pod of each template adds to a node, one run of parts per template. C = templates."""

    run: Ints2  # [2, C] first row and number of rows in ``parts``
    parts: Ints2  # [P, 2] row of Nodes.totals and amount; the row is -1 for a resource that no node offers
    mark: Ints1  # [C] what it adds to the marks of its cards


class Tables(Handle):
    """All that charging a pod touches."""

    nodes: Nodes
    cards: Cards
    pods: Pods
    charges: Charges
    devices: Devices


class ModeTerm(Handle):
    """How a pod's term is made; modes by the numbers that ``kernels/modes`` gives them. Pods share it."""

    blind: int  # the mode of nodes that are judged without their cards, or the node policy in its place
    weight: int  # of the term
    aware: int  # the mode that knows cards, -1 for none
    objective: int  # of keel: which of nodes that lose alike comes first, see below
    unit: int  # what a milli-point of the term counts in a key
    scorer: int  # of a node policy: what the vendor of the devices adds, see choice_scores.NO_SCORE
    extra: int  # and how far from 0 that can be


# ModeTerm.objective: the first in order, the emptier or the fuller node.
NO_OBJECTIVE, SPREAD_NODES, PACK_NODES = 0, 1, 2


class KubeTerm(Handle):
    """What kube-scheduler's scores of resources read for a pod. F, K = resources that they look at."""

    fit: Ints2  # [F, N_FIT] see FIT_*
    balanced: (
        Ints2  # [K, 2] row of the resource matrix, and the amount asked; K = 0: it steps aside
    )
    figures: Ints1  # [N_KUBE] see KUBE_*


# Row of the resource matrix, amount asked, weight; FIT_NONZERO is the row of ``Nodes.nonzero`` where what is there
# is counted, -1: it is counted in ``Nodes.requested``.
FIT_ROW, FIT_AMOUNT, FIT_WEIGHT, FIT_NONZERO, N_FIT = range(5)
# How NodeResourcesFit scores, by the numbers of ``kernels/modes/score.py``, and the weights of both scores.
KUBE_STRATEGY, KUBE_FIT, KUBE_BALANCED, N_KUBE = range(4)


class CardRules(Handle):
    """What a pod says of cards beside how much it asks of each; pods share it."""

    numa_bind: bool  # all its cards are on one NUMA node
    linked: bool  # its cards are chosen by the links between them
    mutex: bool  # only cards that nobody shares will do
    any_idle: bool  # of cards that nobody shares, those of every mode will do; else the next three do not count
    closing: int  # marks that close a card to the pod
    opening: int  # marks of which a card in use must have one, 0: it need not
    keeping: int  # marks by which a card is of the pod's mode, whatever was reported of it
    coreless: bool  # it takes no cores, and also cards without free ones will do
    avoid_gpu: bool  # it asks none, and goes to nodes without any while it fits on one
    whole: int  # devices of that family, where they are counted
    joint: bool  # its devices are on one NUMA node with those of the first family that the pod asks
    walk: bool  # cards are chosen by the driver's walk, whatever the mode
    only: int  # else by the mode for this, the only container that asks any; -1 for none
    size: int  # by how many it asks, as a class: see api/pods/gpus.py
    draw: int  # the number of the decision, for the mode that draws lots


class Preferences(Handle):
    """What a pod shape has in common with most others of its placement: shapes share it."""

    card_weights: Ints1  # [3] of sharers, cores and memory in the driver's score of a card
    sort_keys: Ints1  # [4] order of cards, see kernels/devices/gpus.py
    model_ok: Flags1  # [models]
    mode_ok: Flags1  # [modes]
    uuid_ok: Flags1  # [uuids], or [0] when every card will do
    mode: ModeTerm
    weights: Ints1  # [6]
    dims: Ints1  # [6] resource row of each dimension; the two of GPUs are -1
    sizes: Ints1  # rows of Nodes.requested that count pods by size, [0] where the mode does not read them
    curve: Ints2  # [2, points] utilization percent, score 0..100
    bits: Ints1  # [N_BITS] refusal bits of what kernels judge, see BIT_*


class Ask(Handle):
    """One pod shape, compiled. C = containers, k = resources asked."""

    charge: int  # number of its charge
    resources: Ints1  # [k] row of the resource matrix
    amounts: Ints1  # [k]
    by_cards: (
        Ints1  # [k] family whose cards say it where they are given away one by one, -1 for none
    )
    nonzero: Ints1  # [2] milli-CPU, bytes
    dim_amounts: Ints1  # [6] amount in each dimension; those of GPUs are known only with the cards
    containers: (
        Ints2  # [6, C] kind, cards, MiB, percent, cores, core percent; C = 0 for pods without GPU.
        # Where what they get depends on the model: two more rows for each model, its MiB and cores, 0 for none
    )
    more: Handles  # an ask for each further family of devices that it asks, without ``more``
    claims: ClaimAsk
    family: int  # the first family of devices that the pod asks, by whose pools it is judged; -1 for none
    rules: CardRules
    kube: KubeTerm
    prefers: Preferences


# Preferences.bits: what is short of something, whose cards do not suffice, whose devices do not suffice for claims (the
# first of several, see ``schema/devices.TOO_FEW``), and, of the first resource asked, its own.
BIT_RESOURCES, BIT_CARDS, BIT_CLAIMS, BIT_FIRST_RESOURCE, N_BITS = range(5)
# Refusal bits that one word holds: none is the sign.
WORD = 63

KIND, N_CARDS, ASK_MIB, ASK_PERCENT, ASK_CORES, ASK_CORE_PERCENT, N_ASKED = range(7)
KIND_INIT, KIND_SIDECAR, KIND_APP = 0, 1, 2


class Board(Handle):
    """What is known of one shape on every node, kept up to date row by row.

    S = scores of static rules that tell nodes apart, W = words of refusal bits.
    """

    static: Ints1  # [N] refusal bits of static rules; shared by shapes with the same words
    scores: Ints2  # [S, N] raw scores of static rules, likewise
    norms: Ints2  # [S, N_NORM] see NORM_*
    choices: Ints1  # [N] raw score of the alternatives that claims get there, [0] for pods without alternatives
    choice_norm: Ints1  # [N_NORM] how this score counts
    base: Ints1  # [1] weighted points of the static rules that say the same of every node
    domains: Domains
    refused: (
        Ints2  # [W, N] refusal bits of what changes with placements, where no static rule refuses
    )
    part: Ints1  # [N] the mode's term, -1 where static rules or the node's free resources refuse the pod
    links: Ints1  # [N] milli-points of it that are for links, [0] of pods whose cards are not chosen by links
    key: Ints1  # [N] rank key, -1 where the pod does not fit; the highest wins
    best: Ints1  # [B] row of the highest key in each block, -1 for none


# How a raw score becomes points 0..100: as it is, in parts of the highest of all nodes on which the pod fits, or
# in what is missing to that. NORM_MOST is the highest; -1: look again.
NORM_HOW, NORM_WEIGHT, NORM_MOST, N_NORM = 0, 1, 2, 3
AS_IS, OF_MOST, LESS_OF_MOST = 0, 1, 2
# Of domains only: in what is missing to the sum of the highest and the lowest, in parts of the highest; and in
# parts of the span between them.
OF_BOTH, OF_SPAN = 3, 4


class Typical(Handle):
    """The pods that a fragment is judged by. K = shapes, Q = kinds of cards."""

    cpu: Ints1  # [K] milli-CPU
    cards: Ints1  # [K] cards asked; more than any node has for pods without GPU
    cores: Ints2  # [Q, K] milli of a card's cores, on each card
    mib: Ints2  # [Q, K] milli of a card's memory, likewise
    weight: Ints1  # [K]
    allowed: Flags2  # [N, K] or [0, K], when every node will do


# How much of a typical pod is there, in parts of PER_WHOLE: floor(PER_WHOLE · x / asked) for an x below what is
# asked is (x · Demand.close) >> PER_SHIFT, exactly, while what is asked is below 2^20.
PER_WHOLE, PER_SHIFT = 1024, 40


class Demand(Handle):
    """What is expected of the pods to come, as ``modes/demand_tables.py`` makes it. Q = kinds of cards."""

    price: Floats1  # [N] what a milli-GPU of the node is worth to others, 0..1
    value: (
        Floats2  # [Q, WHOLE + 1] the most that a remainder of that many milli can hold, milli-GPU
    )
    keel: Typical
    close: Ints2  # [2, K of keel] 2^PER_SHIFT · PER_WHOLE over the cards and over the milli-CPU asked, rounded up
    fgd: Typical
    carved: Floats2  # [V, U] by the bits in use of a card: how many parts of each size still fit, milli-GPU
    rates: Floats1  # [N_RATES] see RATE_*
    serving: Ints1  # [R] rows of what else than CPU devices cannot be used without
    served: Floats1  # [R] milli-GPU that one of it serves
    places: Places  # of nodes without devices
    single: Places  # of nodes with one device each, empty where the cluster has others


# Milli-GPU that a milli-CPU can serve, 0: any; departures per arrival; what the weights of each of the two
# sets of typical pods are parts of; most milli-CPU and milli-GPU of any node; what a milli-GPU counts that is
# short of CPU and one that is left on the node, and what a milli-CPU counts that is left there.
(
    RATE_CPU,
    RATE_DEPARTURES,
    RATE_KEEL,
    RATE_FGD,
    RATE_MOST_CPU,
    RATE_MOST_GPU,
    RATE_SHORT,
    RATE_LEFT,
    RATE_LEFT_CPU,
    N_RATES,
) = range(10)


# Positions in Scratch.first.
FIRST_CARD, FIRST_PICK = 0, 1

# Scratch.only_numa; no device has this number.
ANY_NUMA = -(1 << 40)

# Offsets in Scratch.lanes, in lanes.
LANES_CAP, LANES_USED, LANES_ASK = 0, 6 * BLOCK, 12 * BLOCK
LANES_OUT, LANES_WORK, LANES_END = 18 * BLOCK, 19 * BLOCK, 48 * BLOCK


Scratch = scratch.Scratch

# Idle milli-GPU and milli-CPU, and the fragment measure.
WAS_IDLE, WAS_CPU, WAS_MEASURE, N_WAS = 0, 1, 2, 3
