"""Compares what each mode makes of the cluster, filled up or placed again, with the present, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.api.placement import Mode
from scheduler.audit.again import advice, filling, orders
from scheduler.audit.again.advice import Tried
from scheduler.audit.again.filling import Held
from scheduler.audit.again.orders import InOrders
from scheduler.audit.again.replay import Given
from scheduler.audit.again.staying import Parted
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import EmptyNodes
from scheduler.measure import figures as m
from scheduler.measure.figures import Figures
from scheduler.measure.typical import Typical
from scheduler.schema import columns as c

Json = dict[str, Any]
DEFAULT_MODE = "default"
NOTE = (
    "Placing the present pods again describes one moment. It is no promise and no basis for advice: in a real cluster "
    "pods come and go, and no pod moves once it runs. While much is free, modes that spread strand little by this "
    "measure, because one more typical pod still fits on every node, and modes that pack leave nodes empty."
)
_ROUND = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """The present cluster, for comparison. ``rates`` [4, N] are dollars per unit of the nodes of ``figures``."""

    nodes: Sequence[Given]
    engine: Engine
    parted: Parted
    typical: Typical
    figures: Figures
    rates: c.Floats


def compare_modes(
    now: Compared,
    modes: Sequence[Mode | None],
    n_orders: int | None,
    config: Config,
    tell: Callable[[str], None],
) -> Json:
    """Make the part ``replay`` of the audit."""
    parted = now.parted
    n_moving, n_nodes = len(parted.moving), len(now.nodes)
    n_arrivals = filling.count_arrivals(parted, now.figures)
    n_orders = orders.count_orders(n_orders, n_moving + n_arrivals, n_nodes, len(modes))
    tried = orders.replay_orders(now.nodes, parted, now.typical, config, modes, n_orders, tell)
    filled = filling.fill_up(now.nodes, parted, config, modes, n_arrivals, n_orders, tell)
    present = _sum_money(now.figures, now.rates)
    rows = [
        _describe_mode(one, now.rates, present) | {"held": _list_held(then.runs)}
        for one, then in zip(tried, filled, strict=True)
    ]
    return {
        "note": NOTE,
        "moved": n_moving,
        "stayed": len(parted.staying),
        "stays": [{"reason": reason, "pods": count} for reason, count in parted.reasons],
        "withoutController": parted.without_controller,
        "orders": n_orders,
        "emptyNodes": now.engine.ask(EmptyNodes(parted.own)),
        "arrivals": n_arrivals,
        "held": {
            name: values[0]
            for name, values in _list_held([filling.measure_present(parted, now.figures)]).items()
        },
        "modes": rows,
        "advice": _make_advice(rows, n_arrivals, is_seen=_is_seen(now)),
    }


def _list_held(runs: Sequence[Held]) -> Json:
    """List what the nodes hold after each run, by figure."""
    by_dimension = {
        name: [round(run.used[i], _ROUND) for run in runs] for i, name in enumerate(m.DIMENSIONS)
    }
    return by_dimension | {"pods": [run.pods for run in runs]}


def _is_seen(now: Compared) -> bool:
    """Whether enough pods were seen to know what comes next: enough with GPUs, if there are GPUs."""
    has_gpus = bool(now.figures.amounts[m.CAPACITY, m.GPU].any())
    return not (now.typical.gpu_assumed if has_gpus else now.typical.plain_assumed)


def _make_advice(rows: Sequence[Json], n_arrivals: int, *, is_seen: bool) -> Json:
    if not n_arrivals:
        text = "None, because the modes cannot be compared: no running pod can be copied, or nothing is free."
        return {"mode": "", "figure": "", "text": text}
    tried = [Tried(row["mode"], row["held"]) for row in rows]
    given = advice.give_advice(tried, DEFAULT_MODE, is_seen=is_seen)
    return {"mode": given.mode, "figure": given.figure, "text": given.text}


def _describe_mode(one: InOrders, rates: c.Floats, present: float) -> Json:
    """Describe a mode: the figures of the first order, and the figures that differ between orders."""
    first = one.runs[0]
    amounts = first.figures.amounts.sum(axis=2)
    money = [_sum_money(run.figures, rates) for run in one.runs]
    stranded_gpus = [run.figures.amounts[m.STRANDED, m.GPU].sum() for run in one.runs]
    return {
        "mode": one.mode.value if one.mode is not None else DEFAULT_MODE,
        "stranded": _name_dimensions(amounts[m.STRANDED]),
        "dead": _name_dimensions(amounts[m.DEAD]),
        "money": round(money[0], _ROUND),
        "saved": round(present - money[0], _ROUND),
        "emptyNodes": first.empty_nodes,
        "unplaced": list(first.unplaced),
        "inOrders": {
            "emptyNodes": list(one.empty),
            "unplaced": list(one.unplaced),
            "gpus": [round(float(gpus), _ROUND) for gpus in stranded_gpus],
            "money": [round(value, _ROUND) for value in money],
        },
    }


def _sum_money(figures: Figures, rates: c.Floats) -> float:
    """Sum up the dollars a month that are stranded. Every replay has the present nodes, in their order."""
    return float(np.sum(figures.amounts[m.STRANDED] * rates))


def _name_dimensions(values: c.Floats) -> Json:
    rounded = (round(value, _ROUND) for value in values.tolist())
    return dict(zip(m.DIMENSIONS, rounded, strict=True))
