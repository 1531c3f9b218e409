"""Reasons why cards are refused, in HAMi's words. The reasons of rules are in the modules of the rules."""

from __future__ import annotations

from enum import IntEnum


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
    OTHER_CARD = 13
    CLASS = 14


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
    CardRefusal.OTHER_CARD: "CardNotFoundCustomFilterRule",
    CardRefusal.CLASS: "CardAppClassMismatch",
}
