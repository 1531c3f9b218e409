"""What the configuration says of groups."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.api import names

# The levels of a cluster that no Topology object describes, the widest first. Levels that no node has do not matter.
_LEVELS = (
    names.REGION,
    names.ZONE,
    "topology.kubernetes.io/block",
    "topology.kubernetes.io/rack",
    "nvidia.com/gpu.clique",
    names.HOSTNAME,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Which pods are groups without saying so, and which levels the cluster has.

    Attributes:
        owners: kinds of owners whose pods are groups, such as JobSet.
        topology: the node labels of the levels, the widest first.
        promised_percent: so many percent of the nodes at most are promised to a group for later; 0: no group is promised any.
        kueue_balanced_placement: whether groups that prefer a level in Kueue's words get balanced placement, as with Kueue's
            feature gate ``TASBalancedPlacement``.
    """

    owners: tuple[str, ...] = ()
    topology: tuple[str, ...] = _LEVELS
    promised_percent: int = 50
    kueue_balanced_placement: bool = False
