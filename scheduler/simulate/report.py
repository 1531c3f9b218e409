"""What ``evenkeel simulate`` prints for people: the same on a terminal, in a pipe and in a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from scheduler import printing
from scheduler.simulate import alike, explained, lines

Json = dict[str, Any]
# Why workloads have no pods and make none.
_IDLE = {
    "suspended": "suspended",
    "finished": "finished",
    "unsuited": "refused by every node because of its selector, affinity or taints",
}


def show(results: Mapping[str, Json], console: Console, *, is_wide: bool = False) -> None:
    """Print where every pod goes, and with ``nodes`` what every node says; a section for each mode.

    Alike pods share a line, and below all lines each reason for waiting stands once. Lines have 80 columns, or as
    many as a narrower terminal has. Where ``is_wide`` each pod has a line of its own, with the ids of its cards, as
    wide as it is.
    """
    results = printing.make_printable(results)
    if printing.is_terminal(console):
        width = min(console.width, printing.PROSE)
        _show(results, console, width, is_wide=is_wide)
    else:
        text = printing.print_to_text(
            lambda whole: _show(results, whole, printing.PROSE, is_wide=is_wide)
        )
        console.file.write(text)


def _show(results: Mapping[str, Json], console: Console, width: int, *, is_wide: bool) -> None:
    def put(text: Text | str) -> None:
        console.print(text, soft_wrap=True, highlight=False, markup=False)

    for i, (mode, result) in enumerate(results.items()):
        if len(results) > 1:
            heading = Text(f"Mode {mode}", style="bold")
            put(Text("\n").append(heading) if i else heading)
        pods = _marked(result["pods"])
        _pods(pods, put, width, is_wide=is_wide)
        for pod in pods:
            if pod.get("nodes"):
                said = f"{lines.name(pod)} -> {pod['node'] or lines.PENDING}"
                put("\n" + printing.wrap_prose(said, width))
                put("\n".join(explained.lines(pod)))
        put("")
        for line in _summary(result):
            put(printing.wrap_prose(line, width))
        for line in unsuited(result):
            put(Text(printing.wrap_prose(f"{lines.OWN} {line}", width), "yellow"))
        for line in remarks(result):
            put(printing.wrap_prose(line, width))
    if len(results) > 1:
        put("\n" + "\n".join(_compared(results)))


def _marked(pods: Sequence[Json]) -> list[Json]:
    """Pods in the order of their ranks; all of one rank have no mark."""
    if len(set(map(alike.rank, pods))) < 2:
        return [pod | {"own": False, "ofChange": False} for pod in pods]
    return sorted(pods, key=alike.rank)


def _pods(
    pods: Sequence[Json], put: Callable[[Text | str], None], width: int, *, is_wide: bool
) -> None:
    why = alike.reasons(pods)
    number = {id(pod): i for i, one in enumerate(why, 1) for pod in one.pods}
    for line in lines.of_pods(pods, number, width, is_wide=is_wide):
        put(line)
    for i, one in enumerate(why, 1):
        put("\n" + printing.wrap_prose(f"Reason {i}: {lines.names(one.pods)}", width))
        put(Text(printing.wrap_prose(one.message, width, "  "), "yellow"))


def _summary(result: Json) -> Iterator[str]:
    summary = result["summary"]
    pods, nodes = (printing.count_nouns(summary[kind], kind[:-1]) for kind in ("pods", "nodes"))
    yield f"{summary['scheduled']} of {pods} scheduled on {nodes}"
    decided = result["pods"]
    # Files may bring no pod, and the reader must see that those above are not of these files.
    is_asked = bool(result.get("ownFiles"))
    for rank, mark, whose in (0, lines.OWN, "your own pods"), (1, lines.OF_CHANGE, "pods of the change"):  # fmt: skip
        of_rank = [pod for pod in decided if alike.rank(pod) == rank]
        is_part = 0 < len(of_rank) < len(decided)
        if is_part or (rank == 0 and is_asked and not of_rank):
            there = sum(pod["node"] is not None for pod in of_rank)
            yield f"{mark} {whose}: {there} of {printing.count_nouns(len(of_rank), 'pod')} scheduled"


def unsuited(result: Json) -> list[str]:
    """DaemonSets of one's own files that suit no node, each with the reason."""
    return [
        f"{one['kind']} {one['namespace']}/{one['name']} suits no node: {one['reason']}"
        for one in result.get("ownUnsuited", ())
    ]


def _compared(results: Mapping[str, Json]) -> Iterator[str]:
    """A line for each mode."""
    heads = ("MODE", "SCHEDULED", "PENDING", "NODES USED")
    wide = max(len(heads[0]), *map(len, results))
    yield "  ".join((heads[0].ljust(wide), *heads[1:]))
    for mode, result in results.items():
        used = {pod["node"] for pod in result["pods"] if pod["node"]}
        figures = result["summary"]["scheduled"], result["summary"]["pending"], len(used)
        cells = (f"{n:<{len(head)}}" for n, head in zip(figures, heads[1:], strict=True))
        yield "  ".join((mode.ljust(wide), *cells)).rstrip()


def remarks(result: Json) -> Iterator[str]:
    """Objects that have no pod in the answer, without what ``unsuited`` names."""
    own = {f"{one['namespace']}/{one['name']}" for one in result.get("ownUnsuited", ())}
    if passed := result["passedOver"]:
        yield "passed over: " + ", ".join(f"{n} {kind}" for kind, n in passed.items())
    for why, said in _IDLE.items():
        named = {
            kind: [name for name in names if why != "unsuited" or name not in own]
            for kind, names in result.get(why, {}).items()
        }
        # One's own have sentences of their own.
        whose = " of the baseline" if why == "unsuited" and result.get("ownFiles") else ""
        told = [
            f"{len(names)} {kind}{whose} ({printing.list_some(names)})"
            for kind, names in named.items()
            if names
        ]
        if told:
            yield f"{said}, so without pods: {', '.join(told)}"
    yield from _removed(result.get("removed", ()))


def _removed(pods: Iterable[Json]) -> Iterator[str]:
    """Which pods are removed because their workload is to be smaller."""
    of: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        owner = pod["owner"]
        of[f"{owner['kind']} {pod['namespace']}/{owner['name']}"].append(pod["name"])
    for owner, names in of.items():
        n_pods, verb = printing.count_nouns(len(names), "pod"), "goes" if len(names) == 1 else "go"
        yield f"{n_pods} of {owner} {verb}: {printing.list_some(names)}"
