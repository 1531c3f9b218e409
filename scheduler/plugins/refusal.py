"""Why a pod cannot go to any node."""

from __future__ import annotations

from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a pod cannot go to any node, whatever nodes there are: the first rule that refuses it, and the rule's text."""

    rule: str
    text: str
