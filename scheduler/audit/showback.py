"""What the pods of each namespace, or of each value of a label, are allocated, and what it costs a month."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from scheduler import printing
from scheduler.api import selectors, wire
from scheduler.audit import findings, sheet, table, words
from scheduler.audit.findings import Question
from scheduler.audit.prices import rates as rates_of
from scheduler.engine.questions.auditing import JudgedNodes, SharesOf
from scheduler.errors import BadInput
from scheduler.schema import columns as c

Json = dict[str, Any]
NAMESPACE, LABEL = "namespace", "label"
# Of pods without the label, in a table and in CSV: no label has parentheses in its value.
UNLABELLED = "(no label)"
_COLUMNS = ("pods", "gpus", "gpuMemory", "cpu", "memory", "money")
_TITLES = ("pods", "GPUs", "GPU GiB", "CPU", "GiB", "$ a month")
_SAID = (
    "GPUs and GPU GiB are what pods hold on cards: half of a card is 0.5 GPUs. "
    "Capacity that no pod holds is charged to nobody."
)
_ROUND = 6


class By(NamedTuple):
    """What pods are told apart by: their namespace, or where a key is given the value of their label."""

    label: str | None = None

    def read_value(self, pod: wire.Pod) -> str | None:
        """The namespace or the value; None of a pod without the label."""
        if self.label is None:
            return pod.metadata.namespace
        return (pod.metadata.labels or {}).get(self.label)


def parse(text: str) -> By:
    """``namespace`` or ``label=KEY``.

    Raises:
        BadInput: it is neither; says what is allowed.
    """
    what, _, key = text.partition("=")
    if text == NAMESPACE:
        return By()
    if what != LABEL or not key:
        raise BadInput("--by", f'"{text}" is neither namespace nor label=KEY')
    selectors.check_name(key, "--by")
    return By(key)


def showback(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    by: By,
    tell: Callable[[str], None],
) -> Json:
    """What is allocated, as documented for ``evenkeel audit --by … -o json``; the totals are those of the audit.

    Only pods on nodes that the audit judges have something. ``tell`` hears how far it has come.
    """
    engine, mistakes = findings.take_in(nodes, pods, question, tell)
    tell("adding up what pods use")
    names = engine.ask(JudgedNodes())
    rates, models = rates_of.of_nodes(engine, names, question.prices)
    found = engine.ask(SharesOf(names))
    money = (found.amounts * rates[:, found.node]).sum(axis=0)
    values = {pod.metadata.uid: by.read_value(pod) for pod in pods}
    groups: dict[str | None, list[int]] = {}
    for i, pod in enumerate(found.pods):
        groups.setdefault(values[pod.uid], []).append(i)
    rows: list[Json] = [
        {"value": value} | _sum(found.amounts, money, at) for value, at in groups.items()
    ]
    rows.sort(key=lambda row: (-row["money"], row["value"] is None, row["value"] or ""))
    return {
        **findings.heading(engine, question, models, mistakes),
        "by": NAMESPACE if by.label is None else LABEL,
        "label": by.label,
        "rows": rows,
        "total": _sum(found.amounts, money, list(range(len(found.pods)))),
    }


def _sum(amounts: c.Floats, money: c.Floats, at: Sequence[int]) -> Json:
    cpu, memory, gpus, gpu_memory = amounts[:, at].sum(axis=1).tolist()
    given = gpus, gpu_memory, cpu, memory, money[at].sum()
    rounded = (round(float(value), _ROUND) for value in given)
    return dict(zip(_COLUMNS, (len(at), *rounded), strict=True))


def as_csv(answer: Json) -> str:
    """The rows alone, for a spreadsheet that adds them up itself."""
    rows = ((_named(row), *(row[key] for key in _COLUMNS)) for row in answer["rows"])
    return sheet.write_csv((answer["label"] or NAMESPACE, *_COLUMNS), rows)


def show(answer: Json, console: Console) -> None:
    """Print a row for each, and the total."""
    answer = printing.make_printable(answer)
    table.say(console, words.about(answer))
    rows = table.columns(answer["label"] or NAMESPACE, *_TITLES)
    for row in answer["rows"]:
        rows.add_row(Text(_named(row)), *_cells(row))
    rows.add_section()
    rows.add_row("total", *_cells(answer["total"]))
    console.print(rows)
    for line in (_SAID, *words.not_judged(answer), *words.priced_by(answer)):
        table.say(console, line)


def _named(row: Json) -> str:
    return UNLABELLED if row["value"] is None else str(row["value"])


def _cells(row: Json) -> list[str]:
    amounts = (words.amount(row[key]) for key in _COLUMNS[1:-1])
    return [f"{row['pods']:,}", *amounts, f"{row['money']:,.0f}"]
