"""Prints the pods in the table of ``evenkeel simulate``: alike pods share a line; no line is wider than the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from scheduler import printing
from scheduler.simulate import alike

Json = dict[str, Any]
PENDING = "(pending)"
_HEADS = ("POD", "NODE", "CARDS OR REASON")
# The marks before the names of one's own pods, and of pods that a change displaces or adds.
OWN, OF_CHANGE = "*", "+"
_GAP = 2
_INDENT = 4
# The most lines for a workload: the pods of a node of eight GPUs have one each.
_LINES_MAX = 8
# The most characters of the columns of names, so that one long name does not move everything to the right.
_NAME_MAX, _NODE_MAX = 36, 23
# How many characters are kept at the end of a name that is cut.
_END_KEPT = 24


class _Row(NamedTuple):
    """The text of a line, or of several if it is too wide for one.

    Attributes:
        cells: the pods, the node, and other remarks about them.
        more: what follows in lines of their own.
        is_placed: whether the pods have a node.
    """

    cells: tuple[str, str, str]
    more: Sequence[str]
    is_placed: bool


def print_pods(
    pods: Sequence[Json], said: Mapping[int, str], width: int, *, is_wide: bool
) -> Iterator[Text]:
    """Print a line for alike pods on a node, at most eight lines for a workload; if ``is_wide``, one for each pod, uncut.

    Args:
        pods: in the order of their ranks.
        said: what is said of a pod beside its cards, by the pod's ``id``.
        width: columns of the page.
        is_wide: whether cards are named by their ids, too.
    """
    if is_wide:
        rows = [_make_row(pod, said, is_wide=True) for pod in pods]
    else:
        rows = [
            row
            for _, those in groupby(pods, key=alike.read_rank)
            for kind, of_kind in alike.group_by_workload(those).items()
            for row in _make_rows(kind, of_kind, said)
        ]
    cells = [_HEADS, *(row.cells for row in rows)]
    widest = [max(cell_len(one[column]) for one in cells) for column in (0, 1)]
    if not is_wide:
        widest = [min(pair) for pair in zip(widest, (_NAME_MAX, _NODE_MAX), strict=True)]
    starts = (0, widest[0] + _GAP, sum(widest) + 2 * _GAP)
    edge = None if is_wide else width
    yield Text("\n").join(_lay_out(_HEADS, starts, edge, ("bold",) * 3))
    for row in rows:
        styles = ("", "green" if row.is_placed else "yellow", "dim")
        yield Text("\n").join(_lay_out(row.cells, starts, edge, styles))
        for more in row.more:
            text = more if edge is None else printing.wrap_prose(more, edge - _INDENT)
            yield Text("\n".join(" " * _INDENT + line for line in text.splitlines()), "dim")


def _make_rows(kind: alike.Likeness, pods: Sequence[Json], said: Mapping[int, str]) -> list[_Row]:
    """Make the first lines of a workload, and one line for the rest of its pods."""
    groups: dict[tuple[Any, ...], list[Json]] = defaultdict(list)
    for pod in pods:
        evicting = pod["uid"] if pod["victims"] else ""
        remark = _make_remark(pod, said, is_wide=False)
        groups[pod["node"], remark, evicting].append(pod)
    found = list(groups.values())
    shown = found if len(found) <= _LINES_MAX else found[: _LINES_MAX - 1]
    rows = [
        _make_row(those[0], said, is_wide=False)._replace(
            cells=(_make_label(kind, those), *_make_row(those[0], said, is_wide=False).cells[1:])
        )
        for those in shown
    ]
    rest = [pod for those in found[len(shown) :] for pod in those]
    for placed in (True, False):
        left = [pod for pod in rest if (pod["node"] is not None) is placed]
        if left:
            rows.append(_sum_up_rest(kind, left, said, is_placed=placed))
    return rows


def _sum_up_rest(
    kind: alike.Likeness, pods: Sequence[Json], said: Mapping[int, str], *, is_placed: bool
) -> _Row:
    """Sum up the pods of a workload beyond its first lines."""
    name = f"{_find_mark(pods[0])}{kind.namespace}/{kind.name}-… ({len(pods)} more)"
    if is_placed:
        node = printing.count_nouns(len({pod["node"] for pod in pods}), "node")
        words = [cards for cards, _ in Counter(map(_count_devices, pods)).most_common()]
    else:
        node, words = PENDING, []
    words += dict.fromkeys(said[id(pod)] for pod in pods if id(pod) in said)
    return _Row((name, node, printing.list_some([word for word in words if word])), (), is_placed)


def _make_row(pod: Json, said: Mapping[int, str], *, is_wide: bool) -> _Row:
    evicted = [
        f"{alike.make_key(victim)} is evicted from {victim['node']}" for victim in pod["victims"]
    ]
    cells = (
        f"{_find_mark(pod)}{alike.make_key(pod)}",
        pod["node"] or PENDING,
        _make_remark(pod, said, is_wide=is_wide),
    )
    return _Row(cells, evicted, pod["node"] is not None)


def _make_remark(pod: Json, said: Mapping[int, str], *, is_wide: bool) -> str:
    was_on = f"was on {pod['displacedFrom']}" if pod["displacedFrom"] else ""
    cards = ", ".join(_name_cards(pod["devices"], is_wide=is_wide))
    claimed = _name_claimed(pod["claims"])
    return "; ".join(filter(None, (was_on, cards, claimed, said.get(id(pod), ""))))


def mark_name(pod: Json) -> str:
    """Return the name of a pod, marked if the pod is one's own or of a change."""
    return f"{_find_mark(pod)}{alike.make_key(pod)}"


def list_names(pods: Sequence[Json]) -> str:
    """List the first pods by workload, and how many more there are."""
    found = [
        _make_label(kind, of_kind)
        for _, those in groupby(pods, key=alike.read_rank)
        for kind, of_kind in alike.group_by_workload(those).items()
    ]
    return printing.list_some(found)


def _make_label(kind: alike.Likeness, pods: Sequence[Json]) -> str:
    count = f" ({len(pods)} pods)" if len(pods) > 1 else ""
    return f"{_find_mark(pods[0])}{alike.make_label(kind, pods)}{count}"


def _find_mark(pod: Json) -> str:
    return (f"{OWN} ", f"{OF_CHANGE} ", "")[alike.read_rank(pod)]


def _name_cards(devices: Sequence[Json], *, is_wide: bool) -> list[str]:
    """Name the cards of a pod: each with its id, or cards with equal shares together, by their indices."""
    said: list[str] = []
    equal: dict[str, list[int]] = defaultdict(list)
    for device in devices:
        share = _name_share(device)
        if device["index"] is None:
            said.append(f"card {device['id']} {share}")
        elif is_wide:
            said.append(f"card {device['index']} {device['id']} {share}")
        else:
            equal[share].append(device["index"])
    for share, cards in equal.items():
        said.append(f"{'card' if len(cards) == 1 else 'cards'} {_join_ranges(cards)}: {share}")
    return said


def _name_claimed(uses: Sequence[Json]) -> str:
    """Name the devices that the claims of a pod have, and what the pod consumes of those that it shares."""
    found = [
        " ".join([use["device"], *(f"{name} {n}" for name, n in use["consumed"].items())])
        for use in uses
    ]
    return f"{'device' if len(found) == 1 else 'devices'} {', '.join(found)}" if found else ""


def _count_devices(pod: Json) -> str:
    """Say how many cards a pod holds, and how much of each; and how many devices its claims have."""
    cards = Counter(map(_name_share, pod["devices"]))
    claimed = Counter(use["driver"] for use in pod["claims"])
    found = [f"{printing.count_nouns(n, 'card')}: {share}" for share, n in cards.items()]
    found += [f"{printing.count_nouns(n, 'device')} of {name}" for name, n in claimed.items()]
    return ", ".join(found)


def _name_share(device: Json) -> str:
    cores = f" {device['cores']} %" if device["cores"] else ""
    return f"{device['memoryMiB']} MiB{cores}"


def _join_ranges(indices: Sequence[int]) -> str:
    """Join numbers to ``0-3, 6``."""
    said: list[str] = []
    for _, run in groupby(enumerate(sorted(indices)), key=lambda one: one[1] - one[0]):
        numbers = [index for _, index in run]
        is_long = len(numbers) > 2
        said += [f"{numbers[0]}-{numbers[-1]}"] if is_long else map(str, numbers)
    return ", ".join(said)


def _lay_out(
    cells: Sequence[str], starts: Sequence[int], edge: int | None, styles: Sequence[str]
) -> list[Text]:
    """Lay out cells in their columns; what does not fit before the edge goes on in a new line."""
    lines = [Text()]
    for cell, start, style in zip(cells, starts, styles, strict=True):
        if not cell:
            continue
        at = max(start, lines[-1].cell_len + _GAP) if lines[-1] else start
        if edge is None or at + cell_len(cell) <= edge:
            lines[-1].pad_right(at - lines[-1].cell_len)
            lines[-1].append(cell, style)
            continue
        indent = _INDENT if lines[-1] else 0
        if not lines[-1]:
            lines.pop()
        room = edge - indent
        words = (_cut(word, room) for word in cell.split(" "))
        whole = printing.wrap_prose(" ".join(words), room)
        lines += [Text(" " * indent).append(line, style) for line in whole.splitlines()]
    return lines


def _cut(word: str, room: int) -> str:
    """Cut the middle of a name that is too long for a line."""
    if cell_len(word) <= room:
        return word
    return f"{word[: room - _END_KEPT - 1]}…{word[-_END_KEPT:]}"
