"""``evenkeel simulate -o markdown``: a comment on a pull request. What does not fit comes first, and like pods are one row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler import printing
from scheduler.simulate import alike, kai_lines, quota_lines, report
from scheduler.simulate.groups import State, name_group, name_place

Json = dict[str, Any]
# GitHub takes 65,536 characters.
_CHARACTERS_MAX = 60_000
# A namespace, a name and the slash between them have 317 characters at most.
_NAME_MAX, _PROSE_MAX = 320, 1_000
_NAMED_MAX = 3
# The most characters of each of the eleven parts of a section.
_PART_MAX = 5_000
_PENDING = ("Pods", "Pending", "Reason")
_MISTAKES = ("Mistake in", "Field", "Problem")
_EVICTED = ("Pods", "Evicted", "From node", "To make room for")
_GROUPS = ("Pods", "Group", "Placed", "At once", "State")
_SCHEDULED = ("Pods", "Scheduled", "Nodes", "Cards of each pod")
# Characters that have a meaning in Markdown or in HTML, or end the cell of a table.
_SPECIAL = re.compile(r"[\\`*_\[\]<>~|$&]")
# These characters, and those that would notify a person or link to an issue of the repository.
_SPECIAL_IN_PROSE = re.compile(rf"{_SPECIAL.pattern}|[@#](?=\w)")
_NOT_CODE = re.compile(r"[\\`|]")


class _Row(NamedTuple):
    """A row of a table, and how many pods it stands for."""

    pods: int
    cells: tuple[str, ...]


def write_comment(results: Mapping[str, Json]) -> str:
    """Write the comment: a section for each mode; if there are several, a table before that compares them."""
    results = printing.make_printable(results)
    if len(results) == 1:
        return _join(_write_section(*results.values()))
    comment = _join(("### Modes compared", "", *_compare(results)))
    left = len(results)
    for mode, result in results.items():
        section = _join(("", f"## Mode {quote_code(mode)}", "", *_write_section(result)))
        if len(comment) + len(section) > _CHARACTERS_MAX:
            break
        comment, left = comment + section, left - 1
    if left:
        are = "mode is" if left == 1 else "modes are"
        comment += (
            f"\n{left} more {are} in the first table alone: a comment has no room for more.\n"
        )
    return comment


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def quote_code(text: str) -> str:
    """Quote a name as it is; the result can stand in the cell of a table."""
    text = _cut(text, _NAME_MAX)
    if text and not _NOT_CODE.search(text):
        return f"`{text}`"
    return f"<code>{_SPECIAL.sub(_make_entity, text)}</code>"


def escape_prose(text: str) -> str:
    """Escape a sentence that may quote a stranger's text: it draws nothing, links nothing and notifies no one."""
    return _SPECIAL_IN_PROSE.sub(_make_entity, _cut(text, _PROSE_MAX))


def _make_entity(found: re.Match[str]) -> str:
    # A sign right before a name notifies a person, even when it is written as an entity.
    return f"{found[0]}&#8203;" if found[0] in "@#" else f"&#{ord(found[0])};"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _compare(results: Mapping[str, Json]) -> Iterator[str]:
    rows = []
    for mode, result in results.items():
        used = {pod["node"] for pod in result["pods"] if pod["node"]}
        summary = result["summary"]
        figures = summary["scheduled"], summary["pending"], len(used)
        rows.append(_Row(1, (quote_code(mode), *(f"{n:,}" for n in figures))))
    return _write_table(("Mode", "Scheduled", "Pending", "Nodes used"), rows, _CHARACTERS_MAX)


def _write_section(result: Json) -> Iterator[str]:
    pods = result["pods"]
    asked = [pod for pod in pods if pod.get("counts", True)]
    others = [pod for pod in pods if not pod.get("counts", True)]
    yield f"### {_make_heading(asked, result)}"
    if waiting := _list_waiting(asked):
        yield ""
        yield from _write_table(_PENDING, _list_pending(waiting), _PART_MAX)
    if result["mistakes"]:
        yield ""
        yield from _write_table(_MISTAKES, _list_mistakes(result["mistakes"]), _PART_MAX)
    if any(pod["victims"] for pod in pods):
        yield ""
        yield from _write_table(_EVICTED, _list_evicted(pods), _PART_MAX)
    if (changes := result.get("queueChanges")) is not None:
        yield from _write_changes(
            quota_lines.count_changes(changes), quota_lines.list_tables(changes)
        )
    if (changes := result.get("kaiQueueChanges")) is not None:
        yield from _write_changes(kai_lines.count_changes(changes), kai_lines.list_tables(changes))
    yield from _write_groups(asked, result["groups"])
    yield from _write_placed(asked, "", _PART_MAX)
    if waiting := _list_waiting(others):
        fit = len(others) - len(waiting)
        said = f"{_count_pods(len(waiting), 'other')} pending, {fit:,} fit"
        yield from _fold(said, _write_table(_PENDING, _list_pending(waiting), _PART_MAX))
    yield from _write_placed(others, "other", _PART_MAX)
    remarks = [*result["warnings"], *report.list_remarks(result)]
    if remarks:
        yield from _fold(
            printing.count_nouns(len(remarks), "remark"), _write_list(remarks, _PART_MAX)
        )
    yield ""
    nodes = printing.count_nouns(result["summary"]["nodes"], "node")
    yield f"<sub>Simulated by Evenkeel on {nodes}; nothing was changed.</sub>"


def _write_changes(said: str, tables: Sequence[quota_lines.Table]) -> Iterator[str]:
    """Write who gains and who loses by other queues, or by other changes."""
    yield ""
    yield f"{said}."
    for heads, rows in tables:
        if rows:
            yield ""
            titles = [head.capitalize() for head in heads]
            cells = [
                _Row(0, tuple(escape_prose(cell.replace(" -> ", " → ")) for cell in row))
                for row in rows
            ]
            yield from _write_table(titles, cells, _PART_MAX)


def _write_groups(pods: Iterable[Json], groups: Iterable[Json]) -> Iterator[str]:
    """Write where the groups of some pods went, or come closest."""
    if shown := _list_groups(pods, groups):
        rows = (
            _Row(
                one["members"],
                (
                    f"{one['members']:,}",
                    escape_prose(name_place(one)),
                    f"{one['placed']:,}",
                    f"{one['minimum']:,}",
                    one["state"],
                ),
            )
            for one in shown
        )
        yield from _fold(report.count_groups(shown), _write_table(_GROUPS, rows, _PART_MAX))


def _list_groups(pods: Iterable[Json], groups: Iterable[Json]) -> list[Json]:
    """List the groups of some pods."""
    named = {pod["group"] for pod in pods}
    return [one for one in groups if name_group(one) in named]


def _list_waiting(pods: Iterable[Json]) -> list[Json]:
    return [pod for pod in pods if pod["node"] is None]


def _write_placed(pods: Sequence[Json], which: str, room: int) -> Iterator[str]:
    placed = [pod for pod in pods if pod["node"] is not None]
    if placed:
        nodes = printing.count_nouns(len({pod["node"] for pod in placed}), "node")
        table = _write_table(_SCHEDULED, _list_scheduled(placed), room)
        yield from _fold(f"{_count_pods(len(placed), which)} scheduled on {nodes}", table)


def _make_heading(pods: Sequence[Json], result: Json) -> str:
    """Answer the first question of a reader: do the pods fit? Like the exit code, it is only about what counts."""
    pending = len(_list_waiting(pods))
    mistakes = sum(one.get("counts", True) for one in result["mistakes"])
    unsuited = report.list_unsuited(result)
    good = ":warning:" if unsuited else ":white_check_mark:"
    mark = ":x:" if pending or mistakes else good
    whose = _name_owner(pods)
    if not pods:
        said = _say_none(result)
    elif pending:
        verb = "does" if pending == 1 else "do"
        said = f"{pending:,} of {_count_pods(len(pods))}{whose} {verb} not fit"
    elif len(pods) == 1:
        said = f"The pod{whose} fits"
    else:
        said = f"All {_count_pods(len(pods))}{whose} fit"
    groups = _list_groups(pods, result["groups"])
    unplaced = sum(one["state"] in {State.WAITS, State.HELD} for one in groups)
    if unplaced:
        said += f"; {unplaced:,} of {printing.count_nouns(len(groups), 'group')} not placed"
    if mistakes:
        said += f"; {printing.count_nouns(mistakes, 'mistake')} in objects"
    if unsuited:
        said += f"; {printing.list_some([escape_prose(text) for text in unsuited], _NAMED_MAX)}"
    return f"{mark} {said}"


def _name_owner(pods: Iterable[Json]) -> str:
    said = {0: "your files", 1: "the change"}
    ranks = sorted(set(map(alike.read_rank, pods)))
    return "" if not ranks or 2 in ranks else " of " + " and ".join(said[rank] for rank in ranks)


def _say_none(result: Json) -> str:
    if result.get("ownFiles"):
        return "Your files bring no new pod"
    return "The change moves no pod" if result.get("changed") else "No pod is waiting"


def _count_pods(n: int, which: str = "") -> str:
    words = " ".join(filter(None, (f"{n:,}", which, "pod")))
    return words if n == 1 else f"{words}s"


def _list_mistakes(mistakes: Iterable[Json]) -> Iterator[_Row]:
    parts = ("object", "field", "problem")
    return (_Row(1, tuple(escape_prose(one[part]) for part in parts)) for one in mistakes)


def _list_pending(pods: Sequence[Json]) -> Iterator[_Row]:
    """List a row for each reason, with the workloads that wait for it; the most pods first."""
    for one in sorted(alike.group_by_reason(pods), key=lambda reason: -len(reason.pods)):
        n = len(one.pods)
        yield _Row(n, (f"{n:,}", _name_workloads(one.pods), escape_prose(one.message)))


def _list_evicted(pods: Iterable[Json]) -> Iterator[_Row]:
    for pod in pods:
        if pod["victims"]:
            names = [quote_code(f"{one['namespace']}/{one['name']}") for one in pod["victims"]]
            cells = (
                printing.list_some(names, _NAMED_MAX),
                printing.list_some(
                    sorted({quote_code(one["node"]) for one in pod["victims"]}), _NAMED_MAX
                ),
                quote_code(alike.make_key(pod)),
            )
            yield _Row(len(names), (f"{len(names):,}", *cells))


def _list_scheduled(pods: Iterable[Json]) -> Iterator[_Row]:
    """List a row for each workload, the one with the most pods first."""
    for kind, those in _sort_workloads(pods):
        on = Counter(str(pod["node"]) for pod in those)
        nodes = [quote_code(node) + _format_times(n) for node, n in on.most_common()]
        cards = Counter(map(_name_devices, those))
        left = sorted({pod["displacedFrom"] for pod in those} - {None})
        was = (
            f", was on {printing.list_some([quote_code(node) for node in left], _NAMED_MAX)}"
            if left
            else ""
        )
        name = _make_label(kind, those) + was
        shares = printing.list_some([share for share, _ in cards.most_common()], _NAMED_MAX)
        yield _Row(
            len(those), (f"{len(those):,}", name, printing.list_some(nodes, _NAMED_MAX), shares)
        )


def _name_devices(pod: Json) -> str:
    """Name the cards of a pod, one by one if their shares differ, and the devices of its claims by driver."""
    shares = Counter(
        f"{one['memoryMiB']:,} MiB" + (f" {one['cores']} %" if one["cores"] else "")
        for one in pod["devices"]
    )
    shares.update(quote_code(use["driver"]) for use in pod["claims"])
    return " + ".join(f"{n} × {share}" for share, n in shares.items())


def _name_workloads(pods: Iterable[Json]) -> str:
    found = _sort_workloads(pods)
    # For a single workload, the first cell of the row has the number.
    times = [_format_times(len(those)) if len(found) > 1 else "" for _, those in found]
    return printing.list_some(
        [_make_label(*one) + n for one, n in zip(found, times, strict=True)], _NAMED_MAX
    )


def _format_times(n: int) -> str:
    """Format how many pods a workload has, for the line of its name."""
    return f"&nbsp;×&nbsp;{n:,}" if n > 1 else ""


def _sort_workloads(pods: Iterable[Json]) -> list[tuple[alike.Likeness, list[Json]]]:
    """Sort workloads with their pods, the most pods first."""
    return sorted(alike.group_by_workload(pods).items(), key=lambda one: -len(one[1]))


def _make_label(kind: alike.Likeness, pods: Sequence[Json]) -> str:
    if kind.kind:
        return f"{escape_prose(kind.kind)} {quote_code(f'{kind.namespace}/{kind.name}')}"
    return quote_code(alike.make_label(kind, pods))


def _write_table(titles: Sequence[str], rows: Iterable[_Row], room: int) -> Iterator[str]:
    """Write a table with as many rows as there is room for."""
    yield _write_line(titles)
    yield _write_line(["--:" if title == "Pods" else "---" for title in titles])
    rest: list[_Row] = []
    for row in rows:
        line = _write_line(row.cells)
        if rest or len(line) > room:
            rest.append(row)
            continue
        room -= len(line)
        yield line
    if rest:
        n = sum(row.pods for row in rest)
        more = f"and {printing.count_nouns(len(rest), 'more row')}"
        last = [f"{n:,}", more] if titles[0] == "Pods" else [more]
        yield _write_line([*last, *[""] * (len(titles) - len(last))])


def _write_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write_list(texts: Sequence[str], room: int) -> Iterator[str]:
    for i, text in enumerate(texts):
        line = f"- {escape_prose(text)}"
        if len(line) > room:
            yield f"- and {len(texts) - i:,} more"
            return
        room -= len(line)
        yield line


def _fold(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{summary}</summary>", "")
    yield from lines
    yield from ("", "</details>")
