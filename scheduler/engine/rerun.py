"""Runs the log of an engine again, and compares every decision with the recorded one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from scheduler.engine import log
from scheduler.engine.allowance import SpentAllowance
from scheduler.engine.engine import Engine
from scheduler.errors import BadInput


@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision that came out differently.

    Attributes:
        line: number of the line in the log, from 1.
        written, now: what stands in the log, and what came out.
    """

    line: int
    written: log.Decided
    now: log.Decided


@dataclass(frozen=True, slots=True)
class Report:
    """What was run again.

    Attributes:
        version: of the Evenkeel that wrote the log.
        n_events, n_decided, n_binds, n_holds: how many events, times that was decided, and decisions there were, up
            to the difference if there is one.
        is_cut: the last line is incomplete, because the writer was killed.
    """

    version: str
    n_events: int
    n_decided: int
    n_binds: int
    n_holds: int
    is_cut: bool
    difference: Difference | None


def rerun(lines: Iterable[bytes]) -> Report:
    """Run a log from its first line.

    Raises:
        BadInput: it is no log, or one of another format; names the line.
    """
    engine: Engine | None = None
    version, n_events, n_decided, n_binds, n_holds = "", 0, 0, 0, 0

    def report(difference: Difference | None = None, *, is_cut: bool = False) -> Report:
        return Report(version, n_events, n_decided, n_binds, n_holds, is_cut, difference)

    for number, text in enumerate(lines, 1):
        if not text.endswith(b"\n"):
            return report(is_cut=True)
        line = _decoded(text, number)
        if isinstance(line, log.Head):
            _check(line, number)
            engine, version = Engine(line.config), line.version
        elif engine is None:
            raise BadInput(
                f"line {number}", "the first line must hold the settings, and this one does not"
            )
        elif isinstance(line, log.Happened):
            engine.handle(line.event, line.at)
            n_events += 1
        else:
            outcome = engine.decide(line.at, SpentAllowance(line.pods, line.spent))
            now = log.describe_call(line.at, line.pods, line.spent, outcome)
            if now != line:
                found = Difference(number, line, now)
                return report(found)
            n_decided += 1
            n_binds += len(line.binds)
            n_holds += len(line.holds)
    return report()


def _decoded(text: bytes, number: int) -> log.Line:
    try:
        return log.decode(text)
    except msgspec.MsgspecError as error:
        raise BadInput(
            f"line {number}", f"is not a line that evenkeel run --record writes: {error}"
        ) from error


def _check(head: log.Head, number: int) -> None:
    if head.format != log.FORMAT:
        raise BadInput(
            f"line {number}",
            f"has format {head.format}; this version of Evenkeel reads only format {log.FORMAT}",
        )


def write_report(report: Report) -> str:
    """The report in words."""
    figures = f"{report.n_events} events, {report.n_binds} placed, {report.n_holds} held"
    lines = [f"written by Evenkeel {report.version}: {figures}"]
    if report.is_cut:
        lines.append("the last line is incomplete and was left out")
    found = report.difference
    if found is None and not report.n_decided:
        lines.append("the file has settings but no decision, so there is nothing to compare")
    elif found is None:
        lines.append("every decision is the same as the recorded one")
    if found is None:
        return "\n".join(lines)
    lines.append(f"the decision on line {found.line} differs (- recorded, + now):")
    for name in ("binds", "holds", "explained", "evicts", "nominates", "quotas", "frees"):
        written, now = getattr(found.written, name), getattr(found.now, name)
        lines += [f"- {one}" for one in written if one not in now]
        lines += [f"+ {one}" for one in now if one not in written]
    return "\n".join(lines)
