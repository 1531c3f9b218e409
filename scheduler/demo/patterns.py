"""The four patterns: their manifests, the expected placement, and the observed placement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.api import hami, names
from scheduler.documents import reading

_FOLDER = Path(__file__).parent / "manifests"
NODES = _FOLDER / "nodes.yaml"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, with HAMi's published result on two nodes of four cards.

    Attributes:
        name: the name of its file.
        cards_per_node: how many cards are in use on each node in use, the most first.
    """

    name: str
    cards_per_node: tuple[int, ...]

    @property
    def expectation(self) -> str:
        """The expected placement in words."""
        return _write_words(self.cards_per_node)

    @property
    def file(self) -> Path:
        """The file with its pods."""
        return _FOLDER / f"{self.name}.yaml"

    def read_manifests(self) -> list[dict[str, Any]]:
        """Read the pods, as a user would write them."""
        text = self.file.read_text(encoding="utf-8")
        return [one.value for one in reading.read_all(text) if one.value]


ALL = (
    Pattern("binpack-binpack", (2,)),
    Pattern("spread-binpack", (1, 1)),
    Pattern("binpack-spread", (4,)),
    Pattern("spread-spread", (2, 2)),
)


def find_used_cards(pods: list[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Find node → card → names of the pods on it, from the pods' own annotations."""
    found: dict[str, dict[str, list[str]]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        text = (pod["metadata"].get("annotations") or {}).get(names.HAMI_ALLOCATED, "")
        for slot in hami.decode_devices(text) if node else ():
            for use in slot:
                found.setdefault(node, {}).setdefault(use.uuid, []).append(pod["metadata"]["name"])
    return found


def count_cards(pods: list[dict[str, Any]]) -> tuple[int, ...]:
    """Count the cards in use on each node in use, the most first."""
    return tuple(sorted((len(cards) for cards in find_used_cards(pods).values()), reverse=True))


def describe_cards(cards_per_node: tuple[int, ...]) -> str:
    """Describe the observed placement in words."""
    return _write_words(cards_per_node) if cards_per_node else "nothing placed"


def _write_words(cards_per_node: tuple[int, ...]) -> str:
    nodes = len(cards_per_node)
    kinds = Counter(cards_per_node)
    cards = ", ".join(f"{n} card{'s' if n > 1 else ''}" for n in sorted(kinds, reverse=True))
    each = " each" if nodes > 1 and len(kinds) == 1 else ""
    return f"{nodes} node{'s' if nodes > 1 else ''}, {cards}{each}"
