"""Says why a group is pending."""

from __future__ import annotations

from scheduler.api.door.decisions import GroupResult, Hold
from scheduler.api.limits import shorten
from scheduler.telling import sayings
from scheduler.telling.sayings import Saying


def say_group(result: GroupResult, hold: Hold | None) -> Saying:
    """Say how much of a group fits where it comes closest, and why the first of the other pods does not fit."""
    if hold is not None and hold.problem is not None:
        return sayings.say_why(hold)
    head = f"{result.group}: {count_fitting(result)}"
    if hold is None:
        return sayings.say_plain(head, sayings.UNSCHEDULABLE)
    why = sayings.say_why(hold)
    return Saying(
        shorten(f"{head}. {why.message}", sayings.MESSAGE_MAX),
        shorten(f"{head}. {why.note}", sayings.NOTE_MAX),
        (result.group, why.about),
    )


def count_fitting(result: GroupResult) -> str:
    """Say how many pods of a group fit, and where, and whether it runs below its minimum meanwhile."""
    where = say_where(result)
    if where and result.n_domains > 1:
        where += f", the closest of {result.n_domains} domains"
    if result.n_short:
        pods = "pod" if result.n_short == 1 else "pods"
        where += f"; it runs {result.n_short} {pods} below its minimum"
    n, least = len(result.waiting), result.least
    if least > result.n_placed:
        return f"{result.n_placed} of the {least} pods that must be placed at once fit{where}"
    return f"{result.n_placed} of {n} pods fit{where}"


def say_where(result: GroupResult) -> str:
    """Say in which domain the pods of a group fit; nothing for no domain."""
    label, values = result.domain
    return f" in {label} {'/'.join(values)}" if values else ""
