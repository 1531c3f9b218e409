"""Shows what is allocated to the pods of each namespace, or each value of a label, and what it costs a month."""

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
# The name for pods without the label, in a table and in CSV: no value of a label has parentheses.
UNLABELLED = "(no label)"
_COLUMNS = ("pods", "gpus", "gpuMemory", "cpu", "memory", "money")
_TITLES = ("pods", "GPUs", "GPU GiB", "CPU", "GiB", "$ a month")
_SAID = (
    "GPUs and GPU GiB are what pods hold on cards: half of a card is 0.5 GPUs. "
    "Capacity that no pod holds is charged to nobody."
)
_ROUND = 6


class By(NamedTuple):
    """How pods are grouped: by namespace, or, if a key is given, by the value of their label."""

    label: str | None = None

    def read_value(self, pod: wire.Pod) -> str | None:
        """Read the namespace or the value; None for a pod without the label."""
        if self.label is None:
            return pod.metadata.namespace
        return (pod.metadata.labels or {}).get(self.label)


def parse_by(text: str) -> By:
    """Parse ``namespace`` or ``label=KEY``.

    Raises:
        BadInput: the text is neither; the error says what is allowed.
    """
    what, _, key = text.partition("=")
    if text == NAMESPACE:
        return By()
    if what != LABEL or not key:
        raise BadInput("--by", f'"{text}" is neither namespace nor label=KEY')
    selectors.check_name(key, "--by")
    return By(key)


def show_back(
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod],
    question: Question,
    by: By,
    tell: Callable[[str], None],
) -> Json:
    """Sum up what is allocated, as documented for ``evenkeel audit --by … -o json``; the totals are those of the audit.

    Only pods on nodes that the audit evaluates count. ``tell`` gets the progress.
    """
    engine, mistakes = findings.take_in(nodes, pods, question, tell)
    tell("adding up what pods use")
    names = engine.ask(JudgedNodes())
    rates, models = rates_of.find_rates(engine, names, question.prices)
    found = engine.ask(SharesOf(names))
    money = (found.amounts * rates[:, found.node]).sum(axis=0)
    values = {pod.metadata.uid: by.read_value(pod) for pod in pods}
    groups: dict[str | None, list[int]] = {}
    for i, pod in enumerate(found.pods):
        groups.setdefault(values[pod.uid], []).append(i)
    rows: list[Json] = [
        {"value": value} | _sum_up(found.amounts, money, at) for value, at in groups.items()
    ]
    rows.sort(key=lambda row: (-row["money"], row["value"] is None, row["value"] or ""))
    return {
        **findings.make_heading(engine, question, models, mistakes),
        "by": NAMESPACE if by.label is None else LABEL,
        "label": by.label,
        "rows": rows,
        "total": _sum_up(found.amounts, money, list(range(len(found.pods)))),
    }


def _sum_up(amounts: c.Floats, money: c.Floats, at: Sequence[int]) -> Json:
    cpu, memory, gpus, gpu_memory = amounts[:, at].sum(axis=1).tolist()
    given = gpus, gpu_memory, cpu, memory, money[at].sum()
    rounded = (round(float(value), _ROUND) for value in given)
    return dict(zip(_COLUMNS, (len(at), *rounded), strict=True))


def write_csv_rows(answer: Json) -> str:
    """Write the rows without the total, for a spreadsheet that adds them up itself."""
    rows = ((_name_row(row), *(row[key] for key in _COLUMNS)) for row in answer["rows"])
    return sheet.write_csv((answer["label"] or NAMESPACE, *_COLUMNS), rows)


def print_showback(answer: Json, console: Console) -> None:
    """Print a row for each namespace or value, and the total."""
    answer = printing.make_printable(answer)
    table.print_sentence(console, words.describe_source(answer))
    rows = table.make_table(answer["label"] or NAMESPACE, *_TITLES)
    for row in answer["rows"]:
        rows.add_row(Text(_name_row(row)), *_list_cells(row))
    rows.add_section()
    rows.add_row("total", *_list_cells(answer["total"]))
    console.print(rows)
    for line in (_SAID, *words.describe_not_judged(answer), *words.describe_prices(answer)):
        table.print_sentence(console, line)


def _name_row(row: Json) -> str:
    return UNLABELLED if row["value"] is None else str(row["value"])


def _list_cells(row: Json) -> list[str]:
    amounts = (words.write_amount(row[key]) for key in _COLUMNS[1:-1])
    return [f"{row['pods']:,}", *amounts, f"{row['money']:,.0f}"]
