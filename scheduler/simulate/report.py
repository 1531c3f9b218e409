"""The table of ``evenkeel simulate``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from scheduler import printing
from scheduler.simulate import explained

Json = dict[str, Any]
_NAMED_MAX = 5
_GAP = 2
_FIGURE = re.compile(r"\d+")
# Before the names of pods of one's own files.
_MARK = "*"
# Why workloads have no pods and make none.
_IDLE = {
    "suspended": "suspended",
    "finished": "finished",
    "unsuited": "refused by every node because of its selector, affinity or taints",
}


def show(results: Mapping[str, Json], console: Console, *, is_wide: bool = False) -> None:
    """Print where every pod goes, and with ``nodes`` what every node says; a section for each mode.

    A terminal gets a line for each pod, its cards below it, and each reason for waiting once. Off a terminal
    each pod is one line, never wrapped, and names its reason by a number; sentences have 80 columns. Cards are told
    by their indices, and where ``is_wide`` each with its id.
    """
    results = printing.shown(results)
    if printing.is_terminal(console):
        _show(results, console, is_wide=is_wide)
    else:
        text = printing.text(lambda whole: _show(results, whole, is_wide=is_wide))
        console.file.write(text)


def _show(results: Mapping[str, Json], console: Console, *, is_wide: bool) -> None:
    for i, (mode, result) in enumerate(results.items()):
        if len(results) > 1:
            heading = Text(f"Mode {mode}", style="bold")
            console.print(Text("\n").append(heading) if i else heading)
        pods = own_first(result["pods"])
        if console.is_terminal:
            _pods(pods, console, is_wide=is_wide)
        else:
            _lines(pods, console, is_wide=is_wide)
        for pod in pods:
            if pod.get("nodes"):
                heading = Text(f"\n{_name(pod)} -> {pod['node'] or '(pending)'}")
                said = "\n".join(explained.lines(pod))
                console.print(heading.append(f"\n{said}"), soft_wrap=True)
        _summary(result, console)
    if len(results) > 1:
        rows: list[tuple[str, ...]] = [("MODE", "SCHEDULED", "PENDING", "NODES USED")]
        for mode, result in results.items():
            used = {pod["node"] for pod in result["pods"] if pod["node"]}
            figures = result["summary"]["scheduled"], result["summary"]["pending"], len(used)
            rows.append((mode, *map(str, figures)))
        console.print("\n" + "\n".join(_aligned(rows)), soft_wrap=True, highlight=False)


def own_first(pods: Sequence[Json]) -> list[Json]:
    """Pods of one's own files before those of the cluster or the dump, and marked, where there are both."""
    if len({pod.get("own", False) for pod in pods}) < 2:
        return [pod | {"own": False} for pod in pods]
    return sorted(pods, key=lambda pod: not pod["own"])


class Reason(NamedTuple):
    """Why pods wait, in the words told of the first of them; of others only the figures may differ."""

    pods: list[Json]
    differs: bool

    @property
    def message(self) -> str:
        """The sentences, with the figures of the first pod."""
        of_first = f" (The figures are those of {_key(self.pods[0])}.)" if self.differs else ""
        return f"{self.pods[0]['message']}{of_first}"


def reasons(pods: Iterable[Json]) -> list[Reason]:
    """Each reason for waiting once, with its pods, in the order of the first ones."""
    alike: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        if pod["node"] is None:
            alike[_FIGURE.sub("0", pod["unschedulable"] or pod["message"])].append(pod)
    return [Reason(those, len({pod["message"] for pod in those}) > 1) for those in alike.values()]


def _lines(pods: Sequence[Json], console: Console, *, is_wide: bool) -> None:
    """A line for each pod, and below all of them each reason for waiting once, by its number."""
    rows: list[tuple[str, ...]] = [("POD", "NODE", "CARDS OR REASON")]
    why = reasons(pods)
    number = {id(pod): i for i, one in enumerate(why, 1) for pod in one.pods}
    for pod in pods:
        was_on = f"was on {pod['displacedFrom']}" if pod["displacedFrom"] else ""
        said = f"reason {number[id(pod)]}" if id(pod) in number else ""
        # A pod has cards or a reason to wait, never both.
        cards = ", ".join(_cards(pod["devices"], is_wide=is_wide))
        goes = ", ".join(_goes(pod, victim) for victim in pod["victims"])
        told = "; ".join(filter(None, (was_on, cards, said, goes)))
        rows.append((_name(pod), pod["node"] or "(pending)", told))
    for line in _aligned(rows):
        console.file.write(f"{line}\n")
    for i, one in enumerate(why, 1):
        heading = printing.wrapped(f"Reason {i}: {_some([*map(_name, one.pods)])}", printing.PROSE)
        message = printing.wrapped(one.message, printing.PROSE, "  ")
        console.file.write(f"\n{heading}\n{message}\n")


def _pods(pods: Sequence[Json], console: Console, *, is_wide: bool) -> None:
    width = max((cell_len(_name(pod)) for pod in pods), default=3) + _GAP
    console.print(_padded("POD", width) + "NODE", soft_wrap=True, style="bold")
    for pod in pods:
        line = Text(_padded(_name(pod), width))
        line.append(pod["node"] or "(pending)", "green" if pod["node"] else "yellow")
        if pod["displacedFrom"]:
            line.append(f" (was on {pod['displacedFrom']})", "dim")
        for cards in _cards(pod["devices"], is_wide=is_wide):
            line.append(f"\n  {cards}", "dim")
        for victim in pod["victims"]:
            line.append(f"\n  {_goes(pod, victim)}", "dim")
        console.print(line, soft_wrap=True)
    waiting = reasons(pods)
    if waiting:
        console.print("\nPending", style="bold")
    for one in waiting:
        console.print(Padding(Text(one.message, "yellow"), (0, 0, 0, 2)))
        console.print(Padding(Text(_some([*map(_name, one.pods)])), (0, 0, 0, 4)))


def _summary(result: Json, console: Console) -> None:
    summary = result["summary"]
    pods, nodes = (printing.counted(summary[kind], kind[:-1]) for kind in ("pods", "nodes"))
    lines = [f"{summary['scheduled']} of {pods} scheduled on {nodes}"]
    own = [pod for pod in result["pods"] if pod.get("own")]
    if 0 < len(own) < len(result["pods"]):
        there = sum(pod["node"] is not None for pod in own)
        lines.append(
            f"{_MARK} of your files: {there} of {printing.counted(len(own), 'pod')} scheduled"
        )
    lines += remarks(result)
    if not console.is_terminal:
        lines = [printing.wrapped(line, printing.PROSE) for line in lines]
    console.print("\n" + "\n".join(lines), highlight=False, markup=False)


def remarks(result: Json) -> Iterator[str]:
    """What was among the objects and has no pod in the answer."""
    if passed := result["passedOver"]:
        yield "passed over: " + ", ".join(f"{n} {kind}" for kind, n in passed.items())
    for why, said in _IDLE.items():
        told = [
            f"{len(names)} {kind} ({_some(names)})" for kind, names in result.get(why, {}).items()
        ]
        if told:
            yield f"{said}, so without pods: {', '.join(told)}"
    yield from _removed(result.get("removed", ()))


def _removed(pods: Iterable[Json]) -> Iterator[str]:
    """Which pods go as their workload is to be smaller."""
    of: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        owner = pod["owner"]
        of[f"{owner['kind']} {pod['namespace']}/{owner['name']}"].append(pod["name"])
    for owner, names in of.items():
        yield f"{printing.counted(len(names), 'pod')} of {owner} {'goes' if len(names) == 1 else 'go'}: {_some(names)}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _name(pod: Json) -> str:
    mark = f"{_MARK} " if pod.get("own") else ""
    return f"{mark}{_key(pod)}"


def _key(pod: Json) -> str:
    return f"{pod['namespace']}/{pod['name']}"


def _goes(pod: Json, victim: Json) -> str:
    return f"{_name(victim)} is evicted from {pod['nominated']}"


def _cards(devices: Sequence[Json], *, is_wide: bool) -> list[str]:
    """The cards of a pod: each with its id, or those of which it holds as much together by their indices."""
    said: list[str] = []
    alike: dict[str, list[str]] = defaultdict(list)
    for device in devices:
        cores = f" {device['cores']} %" if device["cores"] else ""
        share = f"{device['memoryMiB']} MiB{cores}"
        if device["index"] is None:
            said.append(f"card {device['id']} {share}")
        elif is_wide:
            said.append(f"card {device['index']} {device['id']} {share}")
        else:
            alike[share].append(str(device["index"]))
    for share, cards in alike.items():
        said.append(f"{'card' if len(cards) == 1 else 'cards'} {', '.join(cards)}: {share}")
    return said


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines whose columns are as wide as what stands in them."""
    widths = [max(map(cell_len, column)) + _GAP for column in zip(*rows, strict=True)]
    return ["".join(map(_padded, row, widths)).rstrip() for row in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
