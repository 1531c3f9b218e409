"""The picture of one placement weighed: what a pod would lose on each of four nodes, as ``evenkeel explain`` reports it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from pathlib import Path

from scheduler.api import names
from scheduler.config import Config
from scheduler.cycle.asking import Answers
from scheduler.devices import table as devices
from scheduler.shapes.policies import PolicyBook
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading import files
from scheduler.simulate.situation import prepare
from scheduler.state.cluster import Cluster
from scheduler.telling.advice import best, weighed
from scheduler.telling.advice.asking import Asking
from scheduler.telling.advice.best import Scored

EXAMPLE = Path(__file__).parents[1] / "examples" / "weighed.yaml"
POD = "default/waits"
_WIDTH, _ROW, _TOP = 860, 92, 74
# Left edges of the columns, and how wide bars are.
_NAME, _BARS, _BAR, _LOSS, _LOSS_BAR = 16, 104, 210, 352, 330
_INK, _SOFT, _USED, _POD, _CHOSEN = "#1c2530", "#66717e", "#b8c4d0", "#d9742b", "#eef6ef"
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'
_COLOURS = ("#3f6fb5", "#6f97d0", "#9dbbe3", "#c9dbf2", "#5aa469", "#c9a227")


def drawn() -> str:
    """The picture as SVG."""
    read = files.read_objects(str(EXAMPLE), io.StringIO())
    found_in, config = prepare(read, Changes(), strict=True).inventory, Config()
    cluster = Cluster(config.scheduler_names, devices.read_devices(config), config.pod_limits)
    for node in found_in.nodes:
        cluster.see_node(node)
    for one in found_in.pods:
        cluster.see_pod(one)
    asking = Asking(cluster, Answers(cluster, PolicyBook(config)))
    asking.answers.learn()
    waits = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in found_in.pods}
    pod = cluster.read_as_if(waits[POD])
    found = best.find_best(asking, pod, len(asking.cluster.nodes.rows))
    rows = [(asking.cluster.nodes.find_name(one.row), one) for one in found.nodes]
    most = max(one.loss.total for _, one in rows if one.loss)
    requests = weighed.write_amounts(dict(pod.template.requests.amounts))
    height = _TOP + _ROW * len(rows) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(
            _NAME,
            24,
            f"A pod requests {requests}. Where does it lose least?",
            size=16,
            fill=_INK,
            weight="bold",
        ),
        _text(_BARS, 56, "in use, and with the pod"),
        _text(_LOSS, 56, "what it loses there, in thousandths of an average empty node"),
    ]
    for i, (name, one) in enumerate(rows):
        lines += _row(_TOP + i * _ROW, name, one, most)
    return "\n".join([*lines, "</svg>", ""])


def _row(y: int, name: str, one: Scored, most: float) -> Iterator[str]:
    if one.place == 1:
        yield f'<rect x="6" y="{y}" width="{_WIDTH - 12}" height="{_ROW - 8}" rx="6" fill="{_CHOSEN}"/>'
        yield _text(_NAME, y + 46, "goes here", fill="#2d7a3e", weight="bold")
    yield _text(_NAME, y + 26, name, fill=_INK, weight="bold")
    for j, usage in enumerate(one.after):
        top = y + 14 + 24 * j
        asked = {names.CPU: 1000, names.MEMORY: 2 << 30}[usage.resource]
        before, pod = (usage.used - asked) / usage.total, asked / usage.total
        yield f'<rect x="{_BARS}" y="{top}" width="{_BAR}" height="16" fill="#eef1f4"/>'
        yield f'<rect x="{_BARS}" y="{top}" width="{before * _BAR:.1f}" height="16" fill="{_USED}"/>'
        left = _BARS + before * _BAR
        yield f'<rect x="{left:.1f}" y="{top}" width="{pod * _BAR:.1f}" height="16" fill="{_POD}"/>'
        yield _text(
            _BARS + 6,
            top + 12,
            f"{usage.resource} {100 * usage.used // usage.total} %",
            size=11,
            fill=_INK,
        )
    if one.loss is None:
        raise SystemExit("the example is not judged by what pods lose")
    told = [
        (f"places for {weighed.write_amounts(place.requests)}: {place.lost:.0f}", place.lost)
        for place in one.loss.places
    ]
    named = sum(lost for _, lost in told)
    for term, lost in one.loss.terms.items():
        rest = lost - named if term.startswith("places") else lost
        word = "other places" if term.startswith("places") else term
        if rest >= 0.5:
            told.append((f"{word}: {rest:.0f}", rest))
    x = float(_LOSS)
    for colour, (_, lost) in zip(_COLOURS, told, strict=False):
        wide = lost / most * _LOSS_BAR
        yield f'<rect x="{x:.1f}" y="{y + 14}" width="{wide:.1f}" height="16" fill="{colour}"/>'
        x += wide
    yield _text(x + 8, y + 27, f"{one.loss.total:.0f}", fill=_INK, weight="bold")
    for k, (colour, (word, _)) in enumerate(zip(_COLOURS, told, strict=False)):
        left, top = _LOSS + 250 * (k % 2), y + 48 + 15 * (k // 2)
        yield f'<rect x="{left}" y="{top - 9}" width="9" height="9" fill="{colour}"/>'
        yield _text(left + 14, top, word, size=11)


def _text(
    x: float, y: float, text: str, *, size: int = 12, fill: str = _SOFT, weight: str = "normal"
) -> str:
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{fill}" font-weight="{weight}">{escape(text)}</text>'
