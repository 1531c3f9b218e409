"""The four patterns, with HAMi's resources and with claims: their manifests, and the expected placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.documents import reading

_FOLDER = Path(__file__).parent / "manifests"
NODES = _FOLDER / "nodes.yaml"
# From which each pod of a pattern with claims gets a claim of its own.
TEMPLATE = _FOLDER / "claim-template.yaml"
SHARES, CLAIMS = "shares", "claims"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, with HAMi's published result on two nodes of four cards.

    Attributes:
        node_policy, gpu_policy: the policies of its pods.
        cards_per_node: how many cards are in use on each node in use, the most first.
        by: how its pods request a part of a card, ``SHARES`` or ``CLAIMS``.
    """

    node_policy: str
    gpu_policy: str
    cards_per_node: tuple[int, ...]
    by: str = SHARES

    @property
    def policies(self) -> str:
        """Both policies."""
        return f"{self.node_policy}-{self.gpu_policy}"

    @property
    def expectation(self) -> str:
        """The expected placement in words."""
        return _write_words(self.cards_per_node)

    @property
    def file(self) -> Path:
        """The file with its pods."""
        prefix = "claims-" if self.by == CLAIMS else ""
        return _FOLDER / f"{prefix}{self.policies}.yaml"

    def read_manifests(self) -> list[dict[str, Any]]:
        """Read the pods, as a user would write them."""
        return read_file(self.file)


def read_file(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a file of manifests."""
    text = path.read_text(encoding="utf-8")
    return [one.value for one in reading.read_all(text) if one.value]


BY_SHARES = (
    Pattern("binpack", "binpack", (2,)),
    Pattern("spread", "binpack", (1, 1)),
    Pattern("binpack", "spread", (4,)),
    Pattern("spread", "spread", (2, 2)),
)
BY_CLAIMS = tuple(
    Pattern(one.node_policy, one.gpu_policy, one.cards_per_node, CLAIMS) for one in BY_SHARES
)
ALL = BY_SHARES + BY_CLAIMS


def describe_cards(cards_per_node: tuple[int, ...]) -> str:
    """Describe the observed placement in words."""
    return _write_words(cards_per_node) if cards_per_node else "nothing placed"


def _write_words(cards_per_node: tuple[int, ...]) -> str:
    nodes = len(cards_per_node)
    kinds = Counter(cards_per_node)
    cards = ", ".join(f"{n} card{'s' if n > 1 else ''}" for n in sorted(kinds, reverse=True))
    each = " each" if nodes > 1 and len(kinds) == 1 else ""
    return f"{nodes} node{'s' if nodes > 1 else ''}, {cards}{each}"
