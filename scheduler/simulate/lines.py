"""The pods in the table of ``evenkeel simulate``: alike pods share a line, and no line is wider than the page."""

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
# Before the names of one's own pods, and of those that a change displaces or adds.
OWN, OF_CHANGE = "*", "+"
_GAP = 2
_INDENT = 4
# Lines that a workload gets, so that the pods of a node of eight GPUs have one each.
_LINES_MAX = 8
# Of the columns of names, so that one long name does not move all others to the right.
_NAME_MAX, _NODE_MAX = 36, 23
# Of a name that is cut, how much of its end is kept.
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


def of_pods(
    pods: Sequence[Json], number: Mapping[int, int], width: int, *, is_wide: bool
) -> Iterator[Text]:
    """A line for alike pods on one node, at most eight for a workload; where ``is_wide`` one for each pod, uncut.

    Args:
        pods: in the order of their ranks.
        number: the number of the reason why a pod waits, by the pod's ``id``.
        width: columns of the page.
        is_wide: whether cards are named by their ids, too.
    """
    if is_wide:
        rows = [_one(pod, number, is_wide=True) for pod in pods]
    else:
        rows = [
            row
            for _, those in groupby(pods, key=alike.rank)
            for kind, of_kind in alike.by_workload(those).items()
            for row in _of_workload(kind, of_kind, number)
        ]
    cells = [_HEADS, *(row.cells for row in rows)]
    widest = [max(cell_len(one[column]) for one in cells) for column in (0, 1)]
    if not is_wide:
        widest = [min(pair) for pair in zip(widest, (_NAME_MAX, _NODE_MAX), strict=True)]
    starts = (0, widest[0] + _GAP, sum(widest) + 2 * _GAP)
    edge = None if is_wide else width
    yield Text("\n").join(_laid_out(_HEADS, starts, edge, ("bold",) * 3))
    for row in rows:
        styles = ("", "green" if row.is_placed else "yellow", "dim")
        yield Text("\n").join(_laid_out(row.cells, starts, edge, styles))
        for said in row.more:
            text = said if edge is None else printing.wrap_prose(said, edge - _INDENT)
            yield Text("\n".join(" " * _INDENT + line for line in text.splitlines()), "dim")


def _of_workload(
    kind: alike.Likeness, pods: Sequence[Json], number: Mapping[int, int]
) -> list[_Row]:
    """The first lines of a workload, and one for the pods that are left."""
    groups: dict[tuple[Any, ...], list[Json]] = defaultdict(list)
    for pod in pods:
        evicting = pod["uid"] if pod["victims"] else ""
        said = _said(pod, number, is_wide=False)
        groups[pod["node"], said, evicting].append(pod)
    found = list(groups.values())
    shown = found if len(found) <= _LINES_MAX else found[: _LINES_MAX - 1]
    rows = [
        _one(those[0], number, is_wide=False)._replace(
            cells=(_label(kind, those), *_one(those[0], number, is_wide=False).cells[1:])
        )
        for those in shown
    ]
    rest = [pod for those in found[len(shown) :] for pod in those]
    for placed in (True, False):
        left = [pod for pod in rest if (pod["node"] is not None) is placed]
        if left:
            rows.append(_rest(kind, left, number, is_placed=placed))
    return rows


def _rest(
    kind: alike.Likeness, pods: Sequence[Json], number: Mapping[int, int], *, is_placed: bool
) -> _Row:
    """The pods of a workload beyond its first lines."""
    name = f"{_mark(pods[0])}{kind.namespace}/{kind.name}-… ({len(pods)} more)"
    if is_placed:
        node = printing.count_nouns(len({pod["node"] for pod in pods}), "node")
        words = [
            said for said, _ in Counter(_n_cards(pod["devices"]) for pod in pods).most_common()
        ]
    else:
        node = PENDING
        words = [f"reason {one}" for one in sorted({number[id(pod)] for pod in pods})]
    return _Row((name, node, printing.list_some([word for word in words if word])), (), is_placed)


def _one(pod: Json, number: Mapping[int, int], *, is_wide: bool) -> _Row:
    evicted = [
        f"{alike.key(victim)} is evicted from {pod['nominated']}" for victim in pod["victims"]
    ]
    cells = (
        f"{_mark(pod)}{alike.key(pod)}",
        pod["node"] or PENDING,
        _said(pod, number, is_wide=is_wide),
    )
    return _Row(cells, evicted, pod["node"] is not None)


def _said(pod: Json, number: Mapping[int, int], *, is_wide: bool) -> str:
    was_on = f"was on {pod['displacedFrom']}" if pod["displacedFrom"] else ""
    # A pod has cards or a reason to wait, never both.
    why = f"reason {number[id(pod)]}" if id(pod) in number else ""
    cards = ", ".join(_cards(pod["devices"], is_wide=is_wide))
    return "; ".join(filter(None, (was_on, cards, why)))


def name(pod: Json) -> str:
    """The name of a pod, marked if it is one's own or of a change."""
    return f"{_mark(pod)}{alike.key(pod)}"


def names(pods: Sequence[Json]) -> str:
    """The first pods by workload, and how many more there are."""
    found = [
        _label(kind, of_kind)
        for _, those in groupby(pods, key=alike.rank)
        for kind, of_kind in alike.by_workload(those).items()
    ]
    return printing.list_some(found)


def _label(kind: alike.Likeness, pods: Sequence[Json]) -> str:
    count = f" ({len(pods)} pods)" if len(pods) > 1 else ""
    return f"{_mark(pods[0])}{alike.label(kind, pods)}{count}"


def _mark(pod: Json) -> str:
    return (f"{OWN} ", f"{OF_CHANGE} ", "")[alike.rank(pod)]


def _cards(devices: Sequence[Json], *, is_wide: bool) -> list[str]:
    """The cards of a pod: each with its id, or cards with equal shares together, by their indices."""
    said: list[str] = []
    equal: dict[str, list[int]] = defaultdict(list)
    for device in devices:
        share = _share(device)
        if device["index"] is None:
            said.append(f"card {device['id']} {share}")
        elif is_wide:
            said.append(f"card {device['index']} {device['id']} {share}")
        else:
            equal[share].append(device["index"])
    for share, cards in equal.items():
        said.append(f"{'card' if len(cards) == 1 else 'cards'} {_ranges(cards)}: {share}")
    return said


def _n_cards(devices: Sequence[Json]) -> str:
    """How many cards a pod holds, and how much of each."""
    found = Counter(map(_share, devices))
    return ", ".join(f"{printing.count_nouns(n, 'card')}: {share}" for share, n in found.items())


def _share(device: Json) -> str:
    cores = f" {device['cores']} %" if device["cores"] else ""
    return f"{device['memoryMiB']} MiB{cores}"


def _ranges(indices: Sequence[int]) -> str:
    """Numbers as ``0-3, 6``."""
    said: list[str] = []
    for _, run in groupby(enumerate(sorted(indices)), key=lambda one: one[1] - one[0]):
        numbers = [index for _, index in run]
        is_long = len(numbers) > 2
        said += [f"{numbers[0]}-{numbers[-1]}"] if is_long else map(str, numbers)
    return ", ".join(said)


def _laid_out(
    cells: Sequence[str], starts: Sequence[int], edge: int | None, styles: Sequence[str]
) -> list[Text]:
    """Cells in their columns; what does not fit before the edge goes on in a new line."""
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
    """A name that no line has room for, without its middle."""
    if cell_len(word) <= room:
        return word
    return f"{word[: room - _END_KEPT - 1]}…{word[-_END_KEPT:]}"
