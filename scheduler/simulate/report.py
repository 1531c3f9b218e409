"""Prints the answer of ``evenkeel simulate`` for people: the same on a terminal, in a pipe and in a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from scheduler import printing
from scheduler.simulate import alike, explained, kai_lines, lines, quota_lines
from scheduler.simulate.groups import State, name_group, name_place

Json = dict[str, Any]
# Why workloads have no pods and make none.
_IDLE = {
    "suspended": "suspended",
    "finished": "finished",
    "unsuited": "refused by every node because of its selector, affinity or taints",
}

_GROUP_STATES = {
    State.PLACED: "placed",
    State.PARTLY: "placed in part",
    State.WAITS: "not placed",
    State.HELD: "held",
}


def print_report(results: Mapping[str, Json], console: Console, *, is_wide: bool = False) -> None:
    """Print where every pod goes, and with ``nodes`` what every node says; a section for each mode.

    Alike pods share a line, and each reason for waiting is printed once, below all lines. Lines have 80 columns, or as
    many as a narrower terminal has. If ``is_wide``, each pod has a line of its own, with the ids of its cards, and
    lines are not cut.
    """
    results = printing.make_printable(results)
    if printing.is_terminal(console):
        width = min(console.width, printing.PROSE)
        _print_result(results, console, width, is_wide=is_wide)
    else:
        text = printing.print_to_text(
            lambda whole: _print_result(results, whole, printing.PROSE, is_wide=is_wide)
        )
        console.file.write(text)


def _print_result(
    results: Mapping[str, Json], console: Console, width: int, *, is_wide: bool
) -> None:
    def put(text: Text | str) -> None:
        console.print(text, soft_wrap=True, highlight=False, markup=False)

    for i, (mode, result) in enumerate(results.items()):
        if len(results) > 1:
            heading = Text(f"Mode {mode}", style="bold")
            put(Text("\n").append(heading) if i else heading)
        pods = _sort_marked(result["pods"])
        _print_pods(pods, result["groups"], put, width, is_wide=is_wide)
        for pod in pods:
            if pod.get("nodes"):
                said = f"{lines.mark_name(pod)} -> {pod['node'] or lines.PENDING}"
                put("\n" + printing.wrap_prose(said, width))
                put("\n".join(explained.print_nodes(pod)))
        if told := list(quota_lines.print_workloads(result["workloads"], width)):
            put("\n" + "\n".join(told))
        if (changes := result.get("queueChanges")) is not None:
            put("\n" + "\n".join(quota_lines.print_changes(changes, width)))
        if (changes := result.get("kaiQueueChanges")) is not None:
            put("\n" + "\n".join(kai_lines.print_changes(changes, width)))
        put("")
        _print_end(result, put, width)
    if len(results) > 1:
        put("\n" + "\n".join(_compare(results)))


def _print_end(result: Json, put: Callable[[Text | str], None], width: int) -> None:
    """Print what is said of all pods together, and of objects without pods."""
    for line in _make_summary(result):
        put(printing.wrap_prose(line, width))
    for line in list_unsuited(result):
        put(Text(printing.wrap_prose(f"{lines.OWN} {line}", width), "yellow"))
    for line in list_remarks(result):
        put(printing.wrap_prose(line, width))


def _sort_marked(pods: Sequence[Json]) -> list[Json]:
    """Sort pods by their ranks; if all have the same rank, none has a mark."""
    if len(set(map(alike.read_rank, pods))) < 2:
        return [pod | {"own": False, "ofChange": False} for pod in pods]
    return sorted(pods, key=alike.read_rank)


def _print_pods(
    pods: Sequence[Json],
    groups: Iterable[Json],
    put: Callable[[Text | str], None],
    width: int,
    *,
    is_wide: bool,
) -> None:
    why = alike.group_by_reason(pods)
    place = {name_group(one): name_place(one) for one in groups}
    # A pod that waits has a reason, which names its group.
    said = {id(pod): place[pod["group"]] for pod in pods if pod["group"] and pod["node"]}
    said |= {id(pod): f"reason {i}" for i, one in enumerate(why, 1) for pod in one.pods}
    for line in lines.print_pods(pods, said, width, is_wide=is_wide):
        put(line)
    for i, one in enumerate(why, 1):
        put("\n" + printing.wrap_prose(f"Reason {i}: {lines.list_names(one.pods)}", width))
        put(Text(printing.wrap_prose(one.message, width, "  "), "yellow"))


def _make_summary(result: Json) -> Iterator[str]:
    summary = result["summary"]
    pods, nodes = (printing.count_nouns(summary[kind], kind[:-1]) for kind in ("pods", "nodes"))
    yield f"{summary['scheduled']} of {pods} scheduled on {nodes}"
    if result["groups"]:
        yield count_groups(result["groups"])
    decided = result["pods"]
    # Files may bring no pod; then the reader must see that the pods above are not of these files.
    is_asked = bool(result.get("ownFiles"))
    for rank, mark, whose in (0, lines.OWN, "your own pods"), (1, lines.OF_CHANGE, "pods of the change"):  # fmt: skip
        of_rank = [pod for pod in decided if alike.read_rank(pod) == rank]
        is_part = 0 < len(of_rank) < len(decided)
        if is_part or (rank == 0 and is_asked and not of_rank):
            there = sum(pod["node"] is not None for pod in of_rank)
            yield f"{mark} {whose}: {there} of {printing.count_nouns(len(of_rank), 'pod')} scheduled"


def count_groups(groups: Sequence[Json]) -> str:
    """Count groups by what became of them."""
    states = Counter(one["state"] for one in groups)
    told = [f"{states[state]} {_GROUP_STATES[state]}" for state in State if states[state]]
    return f"{printing.count_nouns(len(groups), 'group')}: {', '.join(told)}"


def list_unsuited(result: Json) -> list[str]:
    """List DaemonSets of one's own files for which no node is suitable, each with the reason."""
    return [
        f"{one['kind']} {one['namespace']}/{one['name']} suits no node: {one['reason']}"
        for one in result.get("ownUnsuited", ())
    ]


def _compare(results: Mapping[str, Json]) -> Iterator[str]:
    """Print a line for each mode."""
    heads = ("MODE", "SCHEDULED", "PENDING", "NODES USED")
    wide = max(len(heads[0]), *map(len, results))
    yield "  ".join((heads[0].ljust(wide), *heads[1:]))
    for mode, result in results.items():
        used = {pod["node"] for pod in result["pods"] if pod["node"]}
        figures = result["summary"]["scheduled"], result["summary"]["pending"], len(used)
        cells = (f"{n:<{len(head)}}" for n, head in zip(figures, heads[1:], strict=True))
        yield "  ".join((mode.ljust(wide), *cells)).rstrip()


def list_remarks(result: Json) -> Iterator[str]:
    """List objects that have no pod in the answer, without those that ``list_unsuited`` names."""
    own = {f"{one['namespace']}/{one['name']}" for one in result.get("ownUnsuited", ())}
    if passed := result["passedOver"]:
        yield "passed over: " + ", ".join(f"{n} {kind}" for kind, n in passed.items())
    for why, said in _IDLE.items():
        named = {
            kind: [name for name in names if why != "unsuited" or name not in own]
            for kind, names in result.get(why, {}).items()
        }
        # One's own DaemonSets have sentences of their own.
        whose = " of the baseline" if why == "unsuited" and result.get("ownFiles") else ""
        told = [
            f"{len(names)} {kind}{whose} ({printing.list_some(names)})"
            for kind, names in named.items()
            if names
        ]
        if told:
            yield f"{said}, so without pods: {', '.join(told)}"
    yield from _list_removed(result.get("removed", ()))


def _list_removed(pods: Iterable[Json]) -> Iterator[str]:
    """List the pods that are removed because their workload is to be smaller."""
    of: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        owner = pod["owner"]
        of[f"{owner['kind']} {pod['namespace']}/{owner['name']}"].append(pod["name"])
    for owner, names in of.items():
        n_pods, verb = printing.count_nouns(len(names), "pod"), "goes" if len(names) == 1 else "go"
        yield f"{n_pods} of {owner} {verb}: {printing.list_some(names)}"
