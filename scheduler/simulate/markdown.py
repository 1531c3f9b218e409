"""``evenkeel simulate -o markdown``: a comment on a pull request. What does not fit comes first, and like pods are one row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler import printing
from scheduler.simulate import alike, report

Json = dict[str, Any]
# GitHub takes 65,536 characters.
_CHARACTERS_MAX = 60_000
# A namespace, a name and what is between them have 317 at most.
_NAME_MAX, _PROSE_MAX = 320, 1_000
_NAMED_MAX = 3
# Of each of the seven parts of a section.
_PART_MAX = 8_000
_PENDING = ("Pods", "Pending", "Reason")
_MISTAKES = ("Mistake in", "Field", "Problem")
_EVICTED = ("Pods", "Evicted", "From node", "To make room for")
_SCHEDULED = ("Pods", "Scheduled", "Nodes", "Cards of each pod")
# What has a meaning in Markdown or in HTML, or ends the cell of a table.
_SPECIAL = re.compile(r"[\\`*_\[\]<>~|$&]")
# These, and what would call a person or point to an issue of the repository.
_SPECIAL_IN_PROSE = re.compile(rf"{_SPECIAL.pattern}|[@#](?=\w)")
_NOT_CODE = re.compile(r"[\\`|]")


class _Row(NamedTuple):
    """A row of a table, and how many pods it stands for."""

    pods: int
    cells: tuple[str, ...]


def write(results: Mapping[str, Json]) -> str:
    """The comment: a section for each mode, after a table that compares them where there are several."""
    results = printing.make_printable(results)
    if len(results) == 1:
        return _joined(_section(*results.values()))
    comment = _joined(("### Modes compared", "", *_compared(results)))
    left = len(results)
    for mode, result in results.items():
        section = _joined(("", f"## Mode {code(mode)}", "", *_section(result)))
        if len(comment) + len(section) > _CHARACTERS_MAX:
            break
        comment, left = comment + section, left - 1
    if left:
        are = "mode is" if left == 1 else "modes are"
        comment += (
            f"\n{left} more {are} in the first table alone: a comment has no room for more.\n"
        )
    return comment


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def code(text: str) -> str:
    """A name as it is, in a cell of a table too."""
    text = _cut(text, _NAME_MAX)
    if text and not _NOT_CODE.search(text):
        return f"`{text}`"
    return f"<code>{_SPECIAL.sub(_entity, text)}</code>"


def prose(text: str) -> str:
    """A sentence that may quote a stranger's text: it draws nothing, links nothing and notifies no one."""
    return _SPECIAL_IN_PROSE.sub(_entity, _cut(text, _PROSE_MAX))


def _entity(found: re.Match[str]) -> str:
    # A sign right before a name notifies a person, as an entity too.
    return f"{found[0]}&#8203;" if found[0] in "@#" else f"&#{ord(found[0])};"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _compared(results: Mapping[str, Json]) -> Iterator[str]:
    rows = []
    for mode, result in results.items():
        used = {pod["node"] for pod in result["pods"] if pod["node"]}
        summary = result["summary"]
        figures = summary["scheduled"], summary["pending"], len(used)
        rows.append(_Row(1, (code(mode), *(f"{n:,}" for n in figures))))
    return _table(("Mode", "Scheduled", "Pending", "Nodes used"), rows, _CHARACTERS_MAX)


def _section(result: Json) -> Iterator[str]:
    pods = result["pods"]
    asked = [pod for pod in pods if pod.get("counts", True)]
    others = [pod for pod in pods if not pod.get("counts", True)]
    yield f"### {_heading(asked, result)}"
    if waiting := _waiting(asked):
        yield ""
        yield from _table(_PENDING, _pending(waiting), _PART_MAX)
    if result["mistakes"]:
        yield ""
        yield from _table(_MISTAKES, _mistakes(result["mistakes"]), _PART_MAX)
    if any(pod["victims"] for pod in pods):
        yield ""
        yield from _table(_EVICTED, _evicted(pods), _PART_MAX)
    yield from _placed(asked, "", _PART_MAX)
    if waiting := _waiting(others):
        fit = len(others) - len(waiting)
        said = f"{_pods(len(waiting), 'other')} pending, {fit:,} fit"
        yield from _folded(said, _table(_PENDING, _pending(waiting), _PART_MAX))
    yield from _placed(others, "other", _PART_MAX)
    remarks = [*result["warnings"], *report.remarks(result)]
    if remarks:
        yield from _folded(
            printing.count_nouns(len(remarks), "remark"), _listed(remarks, _PART_MAX)
        )
    yield ""
    nodes = printing.count_nouns(result["summary"]["nodes"], "node")
    yield f"<sub>Simulated by Evenkeel on {nodes}; nothing was changed.</sub>"


def _waiting(pods: Iterable[Json]) -> list[Json]:
    return [pod for pod in pods if pod["node"] is None]


def _placed(pods: Sequence[Json], which: str, room: int) -> Iterator[str]:
    placed = [pod for pod in pods if pod["node"] is not None]
    if placed:
        nodes = printing.count_nouns(len({pod["node"] for pod in placed}), "node")
        table = _table(_SCHEDULED, _scheduled(placed), room)
        yield from _folded(f"{_pods(len(placed), which)} scheduled on {nodes}", table)


def _heading(pods: Sequence[Json], result: Json) -> str:
    """The first question of a reader: do the pods fit? As the exit code, it is about what counts alone."""
    pending = len(_waiting(pods))
    mistakes = sum(one.get("counts", True) for one in result["mistakes"])
    unsuited = report.unsuited(result)
    good = ":warning:" if unsuited else ":white_check_mark:"
    mark = ":x:" if pending or mistakes else good
    whose = _whose(pods)
    if not pods:
        said = _none(result)
    elif pending:
        verb = "does" if pending == 1 else "do"
        said = f"{pending:,} of {_pods(len(pods))}{whose} {verb} not fit"
    elif len(pods) == 1:
        said = f"The pod{whose} fits"
    else:
        said = f"All {_pods(len(pods))}{whose} fit"
    if mistakes:
        said += f"; {printing.count_nouns(mistakes, 'mistake')} in objects"
    if unsuited:
        said += f"; {printing.list_some([prose(text) for text in unsuited], _NAMED_MAX)}"
    return f"{mark} {said}"


def _whose(pods: Iterable[Json]) -> str:
    said = {0: "your files", 1: "the change"}
    ranks = sorted(set(map(alike.rank, pods)))
    return "" if not ranks or 2 in ranks else " of " + " and ".join(said[rank] for rank in ranks)


def _none(result: Json) -> str:
    if result.get("ownFiles"):
        return "Your files bring no new pod"
    return "The change moves no pod" if result.get("changed") else "No pod is waiting"


def _pods(n: int, which: str = "") -> str:
    words = " ".join(filter(None, (f"{n:,}", which, "pod")))
    return words if n == 1 else f"{words}s"


def _mistakes(mistakes: Iterable[Json]) -> Iterator[_Row]:
    parts = ("object", "field", "problem")
    return (_Row(1, tuple(prose(one[part]) for part in parts)) for one in mistakes)


def _pending(pods: Sequence[Json]) -> Iterator[_Row]:
    """A row for each reason, with the workloads that wait for it; the most pods first."""
    for one in sorted(alike.reasons(pods), key=lambda reason: -len(reason.pods)):
        n = len(one.pods)
        yield _Row(n, (f"{n:,}", _workloads(one.pods), prose(one.message)))


def _evicted(pods: Iterable[Json]) -> Iterator[_Row]:
    for pod in pods:
        if pod["victims"]:
            names = [code(f"{one['namespace']}/{one['name']}") for one in pod["victims"]]
            cells = (
                printing.list_some(names, _NAMED_MAX),
                code(str(pod["nominated"])),
                code(alike.key(pod)),
            )
            yield _Row(len(names), (f"{len(names):,}", *cells))


def _scheduled(pods: Iterable[Json]) -> Iterator[_Row]:
    """A row for each workload, the one with the most pods first."""
    for kind, those in _largest(pods):
        on = Counter(str(pod["node"]) for pod in those)
        nodes = [code(node) + _times(n) for node, n in on.most_common()]
        cards = Counter(_cards(pod["devices"]) for pod in those)
        left = sorted({pod["displacedFrom"] for pod in those} - {None})
        was = (
            f", was on {printing.list_some([code(node) for node in left], _NAMED_MAX)}"
            if left
            else ""
        )
        name = _label(kind, those) + was
        shares = printing.list_some([share for share, _ in cards.most_common()], _NAMED_MAX)
        yield _Row(
            len(those), (f"{len(those):,}", name, printing.list_some(nodes, _NAMED_MAX), shares)
        )


def _cards(devices: Sequence[Json]) -> str:
    """What a pod is given, card by card where the shares differ."""
    shares = Counter(
        f"{one['memoryMiB']:,} MiB" + (f" {one['cores']} %" if one["cores"] else "")
        for one in devices
    )
    return " + ".join(f"{n} × {share}" for share, n in shares.items())


def _workloads(pods: Iterable[Json]) -> str:
    found = _largest(pods)
    # Of a single workload, the first cell of the row has the number.
    times = [_times(len(those)) if len(found) > 1 else "" for _, those in found]
    return printing.list_some(
        [_label(*one) + n for one, n in zip(found, times, strict=True)], _NAMED_MAX
    )


def _times(n: int) -> str:
    """How many of it, on the line of its name."""
    return f"&nbsp;×&nbsp;{n:,}" if n > 1 else ""


def _largest(pods: Iterable[Json]) -> list[tuple[alike.Likeness, list[Json]]]:
    """Pods by workload, the most pods first."""
    return sorted(alike.by_workload(pods).items(), key=lambda one: -len(one[1]))


def _label(kind: alike.Likeness, pods: Sequence[Json]) -> str:
    if kind.kind:
        return f"{prose(kind.kind)} {code(f'{kind.namespace}/{kind.name}')}"
    return code(alike.label(kind, pods))


def _table(titles: Sequence[str], rows: Iterable[_Row], room: int) -> Iterator[str]:
    """A table with as many rows as there is room for."""
    yield _line(titles)
    yield _line(["--:" if title == "Pods" else "---" for title in titles])
    rest: list[_Row] = []
    for row in rows:
        line = _line(row.cells)
        if rest or len(line) > room:
            rest.append(row)
            continue
        room -= len(line)
        yield line
    if rest:
        n = sum(row.pods for row in rest)
        more = f"and {printing.count_nouns(len(rest), 'more row')}"
        last = [f"{n:,}", more] if titles[0] == "Pods" else [more]
        yield _line([*last, *[""] * (len(titles) - len(last))])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _listed(texts: Sequence[str], room: int) -> Iterator[str]:
    for i, text in enumerate(texts):
        line = f"- {prose(text)}"
        if len(line) > room:
            yield f"- and {len(texts) - i:,} more"
            return
        room -= len(line)
        yield line


def _folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{summary}</summary>", "")
    yield from lines
    yield from ("", "</details>")
