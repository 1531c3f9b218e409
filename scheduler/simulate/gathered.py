"""The situation of objects that a command has gathered, and the complaints about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.errors import make_visible
from scheduler.simulate import gaps
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.gathering import CLUSTER, Gathered
from scheduler.simulate.situation import Situation, prepare

# The exit codes of an answer, without and with mistakes in objects of files.
OK, MISTAKES = 0, 3
_TOLD_MAX = 20


class Complaints(NamedTuple):
    """What there is to say on standard error, and the exit code."""

    texts: list[str]
    code: int


def prepare_gathered(gathered: Gathered, unlisted: Mapping[str, str] | None) -> Situation:
    """Make the situation of objects as they are; mistaken ones are left out.

    Args:
        gathered: the objects, and where they are from.
        unlisted: the kinds that the cluster did not list; None for objects of files alone.
    """
    return prepare(
        gathered.objects, Changes(), strict=False, unlisted=unlisted, remarks=gathered.remarks
    )


def list_complaints(gathered: Gathered, situation: Situation) -> Complaints:
    """List the mistakes in objects and the kinds that could not be listed. Mistakes in files are in the exit code."""
    problems = list(situation.inventory.mistakes.values())
    said = [make_visible(gathered.origins[one.position].prefix(str(one))) for one in problems]
    more = len(said) - _TOLD_MAX
    texts = [*said[:_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
    texts += [f"warning: {text}" for text in gaps.report_unlisted_kinds(situation.unlisted or {})]
    mine = any(gathered.origins[one.position].file != CLUSTER for one in problems)
    return Complaints(texts, MISTAKES if mine else OK)
