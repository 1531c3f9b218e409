"""The pods that an owner makes, by template: how many at once, how many of them at least, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.api import names, values
from scheduler.api.groups.definitions import Progress
from scheduler.api.groups.readers import kai, kueue, reading, segments
from scheduler.api.groups.readers.reading import Notes
from scheduler.errors import BadInput

_TEMPLATE_NOTES = kueue.PLACEMENT | kai.PLACEMENT | segments.NOTES | {
    names.GANG, names.RUN_TIME, names.ON_FAILURE,
}  # fmt: skip


class Share(NamedTuple):
    """The pods that an owner makes from one template.

    Attributes:
        name: the name of the part; empty: the group has one part.
        total: how many there are at once.
        template: the template of the pods; None: it is not known.
        field: path of the template.
        at_once: how many of them are made before any other has a node; None: all.
        made: how many there were to be at once at first, if fewer are left to run.
        spare: so many may succeed before one is not followed by another.
        succeeded: how many have succeeded, as the status says.
    """

    name: str
    total: int
    template: Any = None
    field: str = ""
    at_once: int | None = None
    made: int | None = None
    spare: int = 0
    succeeded: int = 0

    @property
    def most(self) -> int:
        """How many there are at once before any has succeeded."""
        return self.total if self.made is None else self.made

    def limit(self, total: int) -> int:
        """Limit a number of its pods to those that are made before any other has a node."""
        return total if self.at_once is None else min(self.at_once, total)

    @property
    def notes(self) -> Notes:
        """The annotations of the template that are read."""
        at = f"{self.field}.metadata"
        meta = values.read_mapping(self._read().get("metadata"), at)
        found = values.read_mapping(meta.get("annotations"), f"{at}.annotations")
        texts = {key: found[key] for key in _TEMPLATE_NOTES if key in found}
        for key, text in texts.items():
            if not isinstance(text, str):
                raise BadInput(f"{at}.annotations[{key}]", f"{values.quote(text)} is not a text")
        return Notes(texts, at)

    def find_run_seconds(self) -> float | None:
        """Find how long its pods run at most."""
        at = f"{self.field}.spec"
        spec = values.read_mapping(self._read().get("spec"), at)
        deadline = spec.get("activeDeadlineSeconds")
        return reading.find_run_seconds(self.notes, {}, deadline, f"{at}.activeDeadlineSeconds")

    def _read(self) -> Mapping[str, Any]:
        return values.read_mapping(self.template, self.field)


class Plan(NamedTuple):
    """What an owner says.

    Attributes:
        shares: its pods, by templates.
        minimum: how many pods must have a node at once if no annotation says it; None: all.
        deadline: after how many seconds it ends, as it is written, and where that is.
    """

    shares: tuple[Share, ...]
    minimum: int | None = None
    deadline: tuple[Any, str] = (None, "")


def list_progress(plan: Plan, minimum: int | None) -> tuple[Progress, ...]:
    """List the parts of which pods have succeeded, or are followed by others."""
    found = []
    # What the minimum was before any had succeeded.
    firsts = _share_minimum(minimum, [one.limit(one.most) for one in plan.shares])
    for one, first, least in zip(plan.shares, firsts, list_least(plan, minimum), strict=True):
        if one.spare or one.succeeded:
            found.append(Progress(one.name, one.spare + first - least, one.succeeded))
    return tuple(found)


def list_least(plan: Plan, minimum: int | None) -> list[int]:
    """List how many pods of each part must have a node at once."""
    return _share_minimum(minimum, [one.limit(one.total) for one in plan.shares])


def _share_minimum(minimum: int | None, most: Iterable[int]) -> list[int]:
    """Take a minimum from the parts in their order, as those that lead come first; None: all that there are."""
    left = reading.INT32_MAX if minimum is None else minimum
    taken = []
    for one in most:
        taken.append(min(left, one))
        left -= taken[-1]
    return taken
