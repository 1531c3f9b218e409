"""Why not: one code per reason, and the words kube-scheduler and HAMi use for them.

Filters run in this order and stop at the first that refuses, so a node has one static reason or
all of its resource reasons or the codes of its cards. Words are made only when someone reads them.
"""

from __future__ import annotations

from enum import IntEnum


class Refusal(IntEnum):
    """What a filter says of a node; 0 is a node that fits."""

    NONE = 0
    UNSCHEDULABLE = 1
    TAINT = 3
    AFFINITY = 4
    PORTS = 5
    RESOURCES = 6
    CARDS = 7
    LEFT_OUT = 8


WORDS: dict[Refusal, str] = {
    Refusal.UNSCHEDULABLE: "node(s) were unschedulable",
    Refusal.TAINT: "node(s) had untolerated taint(s)",
    Refusal.AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Refusal.PORTS: "node(s) didn't have free ports for the requested pod ports",
    Refusal.LEFT_OUT: "node(s) had malformed annotations or quantities",
}

# Preemption cannot help where evicting a pod changes nothing.
UNRESOLVABLE = frozenset(
    {
        Refusal.UNSCHEDULABLE,
        Refusal.TAINT,
        Refusal.AFFINITY,
        Refusal.LEFT_OUT,
    }
)


class CardRefusal(IntEnum):
    """HAMi's reason codes for one card, by position in the kernel's count array."""

    HEALTH = 0
    CORDONED = 1
    TYPE = 2
    NUMA = 3
    UUID = 4
    SLOTS = 5
    EXCLUSIVE = 6
    MEMORY = 7
    CORES = 8
    EXHAUSTED = 9
    MIG = 10
    TOO_FEW = 11
    TOO_MANY_ASKED = 12


# Of a node of HAMi's without any card.
REGISTERED_NONE = "node(s) had no card registered with HAMi"
NOT_REGISTERED = "node(s) wait for HAMi's device plugin to register their cards"

CARD_CODES: dict[CardRefusal, str] = {
    CardRefusal.HEALTH: "CardNotHealth",
    CardRefusal.CORDONED: "CardCordoned",
    CardRefusal.TYPE: "CardTypeMismatch",
    CardRefusal.NUMA: "NumaNotFit",
    CardRefusal.UUID: "CardUuidMismatch",
    CardRefusal.SLOTS: "CardTimeSlicingExhausted",
    CardRefusal.EXCLUSIVE: "ExclusiveDeviceAllocateConflict",
    CardRefusal.MEMORY: "CardInsufficientMemory",
    CardRefusal.CORES: "CardInsufficientCore",
    CardRefusal.EXHAUSTED: "CardComputeUnitsExhausted",
    CardRefusal.MIG: "CardMigTopologyInfeasible",
    CardRefusal.TOO_FEW: "AllocatedCardsInsufficientRequest",
    CardRefusal.TOO_MANY_ASKED: "NodeInsufficientDevice",
}
