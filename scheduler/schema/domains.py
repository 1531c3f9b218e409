"""What a shape counts of pods in domains of nodes, as kernels read it. N is the capacity in node rows."""

from __future__ import annotations

from scheduler.schema.handles import Flags2, Floats1, Handle, Ints1, Ints2


class Domains(Handle):
    """What a shape counts of pods in domains of nodes.

    T = tallies, V = most domains that one is kept of, K = labels that make domains, M = masks, G = scores.
    """

    tallies: Ints2  # [T, N_TALLY] see TALLY_*
    counts: Ints2  # [T, V] pods in each domain
    there: Flags2  # [T, V] whether any node whose pods are counted is in the domain
    domain: Ints2  # [K, N] domain of each node by a label, -1 where it has none
    counted: Flags2  # [M, N] nodes whose pods are counted
    figures: Ints1  # [N_FIGURES] see FIGURE_*
    scores: Ints2  # [G, N_NORM] see NORM_*
    raw: Ints2  # [G, N] raw scores, of nodes on which the pod fits
    points: Ints2  # [G, N] points 0..100, likewise
    logs: Floats1  # [N + 3] ln(n + 2) of how many domains there are
    seen: Ints1  # [V] working space


# TALLY_KIND: what a count means, see below. TALLY_BIT: the refusal bit; TALLY_NO_LABEL: that of nodes without the
# label. TALLY_GAIN: what a pod of the shape adds to the count of the domain that it goes to. TALLY_KEY: which row
# of ``domain``, -1 where each node is a domain by itself; TALLY_MASK: which row of ``counted``, -1 for all nodes.
# TALLY_SELF: whether the pod is one of those that are counted. TALLY_SKEW: by how much a domain may exceed the
# emptiest, which counts as empty where there are fewer domains than TALLY_LEAST; TALLY_FEWEST: what it has.
# TALLY_SCORE: which score it is part of; TALLY_WEIGHT: what each counts there. TALLY_BY_NODE: nodes are counted
# instead of domains. TALLY_STRICT: nodes without the label have no score; else they are the domain TALLY_EMPTY, of
# the empty value, -1 where no node has that. TALLY_SIZE: how many domains there are among the nodes on which the
# pod fits.
(
    TALLY_KIND,
    TALLY_BIT,
    TALLY_NO_LABEL,
    TALLY_GAIN,
    TALLY_KEY,
    TALLY_MASK,
    TALLY_SELF,
    TALLY_SKEW,
    TALLY_LEAST,
    TALLY_FEWEST,
    TALLY_SCORE,
    TALLY_WEIGHT,
    TALLY_BY_NODE,
    TALLY_STRICT,
    TALLY_EMPTY,
    TALLY_SIZE,
    N_TALLY,
) = range(17)
# APART refuses domains in which something is counted; NEAR those in which nothing is, unless there is nothing in
# any and the pod is one of those that are counted. EVEN refuses domains that exceed the emptiest by more than the
# skew. ROOM refuses where what is counted and TALLY_SELF, what the pod brings, are more than TALLY_SKEW. SPREAD scores
# a domain by how few it has, SUM by the sum of what is counted; POINTS are points as they are, of each node by itself.
APART, NEAR, EVEN, ROOM, SPREAD, SUM, POINTS = 0, 1, 2, 3, 4, 5, 6
# FIGURE_WIDE: whether a placement changes more than its own node. FIGURE_STAMP: how often ``seen`` was used.
# FIGURE_NEAR: how much is counted in all domains of tallies of NEAR.
FIGURE_WIDE, FIGURE_STAMP, FIGURE_NEAR, N_FIGURES = 0, 1, 2, 3
