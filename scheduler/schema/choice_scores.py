"""What the choice of a pod's cards on a node adds to the score of the node."""

from __future__ import annotations

from scheduler.schema.handles import Floats1, Floats2, Handle, Ints1

# ModeTerm.scorer: what a vendor's plugin says of so many cards; the share of the cards of a container that are of one
# group; likewise of one network; how many islands the pod breaks; the links between whole cards; and who
# shares the cards already. See kernels/devices/vendor_scores.py.
NO_SCORE, BY_NUMBER, BY_GROUPS, BY_NETWORKS, BY_ISLANDS, BY_ZONES, BY_SHARERS = range(7)
# A score that is to count more than any use of cards is multiplied by this; then it is at most so much.
NEUTRAL_WEIGHT, NEUTRAL_MOST = 10_000, 10_000
# By scorer: scores are never further from 0.
_NEUTRAL = NEUTRAL_WEIGHT * NEUTRAL_MOST
MOST = (0, 4_000, 100, 1_000, 3_000, _NEUTRAL, _NEUTRAL)


class ChoiceScores(Handle):
    """Scores of the nodes in the lanes, and what the links of one node's choice add up to."""

    vendor: Floats1  # [BLOCK] what the vendor adds to the score of a node policy, 0 for nothing
    units: Floats2  # [2, BLOCK] of pods with claims: how many units of devices a node has, and how much of them is in use
    links: Ints1  # [BLOCK] milli-points for links
    pairs: Ints1  # [N_PAIRS] of the pairs of cards that were chosen by their links: see PAIRS_*


# The sum of their scores, and how many pairs there are.
PAIRS_SUM, PAIRS_NUMBER, N_PAIRS = range(3)
