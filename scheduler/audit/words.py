"""Sentences and cells that the table and the page of an audit share."""

from __future__ import annotations

from typing import Any

from scheduler.api.placement import Mode
from scheduler.audit import unread
from scheduler.audit.comparison import DEFAULT_MODE
from scheduler.audit.prices.book import UNITS
from scheduler.telling.advice import weighed

Json = dict[str, Any]
TITLES = {
    "cpu": "CPU, cores",
    "memory": "memory, GiB",
    "gpuCompute": "GPUs",
    "gpuMemory": "GPU memory, GiB",
}
# The figures of what the nodes hold when the cluster is filled up.
HELD = {"gpuCompute": "GPUs", "cpu": "cores", "memory": "memory, GiB", "pods": "pods"}
FIGURES = {
    "capacity": "capacity",
    "used": "used",
    "usable": "usable, unused",
    "stranded": "stranded",
    "dead": "no pod can use",
    "spare": "no loss",
    "closed": "out of service",
}
# The meaning of the last three figures; sentences above the figures explain the others.
LEGEND = (
    "No pod can use: the part of the stranded capacity that no typical pod can use.",
    (
        "No loss: free CPU and memory that typical pods would not use, and that therefore does not count as stranded. An "
        "example is CPU on a node whose GPUs are all in use."
    ),
    (
        "Out of service: free capacity of nodes that are cordoned or unhealthy, and of cards that are unhealthy, in MIG "
        "mode, or possibly held by pods that do not say which cards they hold."
    ),
)
# What happens to one object with mistakes, and to several.
_EFFECTS = {
    unread.LEFT_OUT: ("object", "has mistakes and is left out", "have mistakes and are left out"),
    unread.STAYS: (
        "pod",
        "has mistakes and stays on its node with what can be read of it",
        "have mistakes and stay on their nodes with what can be read of them",
    ),
}
# The text instead of what a node strands.
OUT = "out"
_REASONS_MAX = 6
_MISTAKES_MAX = 10
_MODELS_MAX = 12
_RANGES = "A range goes from the lowest to the highest result of these orders."


def write_amount(value: float) -> str:
    """Write an amount with one decimal; thousands without."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}"


def write_short(value: float) -> str:
    """As ``write_amount``, without a decimal that is 0."""
    return write_amount(value).removesuffix(".0")


def write_dollars(value: float) -> str:
    """Write whole dollars."""
    return f"${value:,.0f}"


def count_nouns(count: int, one: str) -> str:
    """Write ``1 pod`` or ``2 pods``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def write_range(values: list[float]) -> str:
    """Write the least and the most of some values; as one figure if both read the same."""
    low, high = (_write_plain(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def write_whole_range(values: list[float]) -> str:
    """As ``write_range``, in whole units."""
    return write_range([round(value) for value in values])


def _write_plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else write_amount(value)


def describe_source(audit: Json) -> str:
    """Describe what the audit is about, its time and the version of Evenkeel."""
    told = audit["about"]
    return f"{told['source']}, {told['made']}, Evenkeel {told['evenkeel']}"


def write_headline(audit: Json) -> list[str]:
    """Write what could be used and is not, and then what is stranded."""
    total = audit["total"]
    value = total["value"]
    return [
        (
            f"Of {write_dollars(value['capacity'])} a month, {write_dollars(value['usable'])} is usable and unused: "
            f"{_list_amounts(total['usable'])}.{_describe_not_counted(audit['uncounted'])}"
        ),
        (
            f"{write_dollars(value['stranded'])} a month is stranded, which means that typical pods cannot use it "
            f"although it is free: {_list_amounts(total['stranded'])}."
        ),
    ]


def _describe_not_counted(nodes: list[Json]) -> str:
    """Describe how many GPUs the figures leave out, as far as labels show; empty for none."""
    if not nodes:
        return ""
    gpus = sum(one["gpus"] or 0 for one in nodes)
    unknown = sum(one["gpus"] is None for one in nodes)
    labelled = f", {count_nouns(gpus, 'GPU')} by their labels" if gpus else ""
    others = f" and an unknown number on {count_nouns(unknown, 'node')}" if gpus and unknown else ""
    return f" Not counted: the GPUs of {count_nouns(len(nodes), 'more node')}{labelled}{others}."


def _list_amounts(amounts: Json) -> str:
    return (
        f"{write_short(amounts['gpuCompute'])} GPUs, {write_short(amounts['cpu'])} cores and "
        f"{write_short(amounts['memory'])} GiB of memory"
    )


def describe_share(audit: Json) -> str:
    """Describe which part of the free GPUs typical pods cannot use; empty if none is free."""
    total = audit["total"]
    free, dead = total["free"]["gpuCompute"], total["dead"]["gpuCompute"]
    if not free:
        return ""
    stranded = total["stranded"]["gpuCompute"]
    n, gpus = write_short(free), "GPU" if write_short(free) == "1" else "GPUs"
    if write_short(stranded) == "0":
        return f"Typical GPU pods can use all of the {n} free {gpus}."
    text = f"Typical GPU pods cannot use {_write_percent(stranded / free)} of the {n} free {gpus}, on average over these pods"
    if write_short(dead) == "0":
        return f"{text}."
    return f"{text}. {write_short(dead)} of the free {gpus} cannot be used by any typical GPU pod."


def _write_percent(share: float) -> str:
    """Write a share above 0 in percent."""
    return "less than 1%" if share < 0.005 else f"{share:.0%}"


def describe_demand(audit: Json) -> list[str]:
    """Describe in sentences the demand on which the figures rest."""
    demand, lines = audit["demand"], []
    for key, kind in (("gpuPods", "with GPUs"), ("otherPods", "without GPUs")):
        seen = demand[key]["seen"]
        if demand[key]["assumed"]:
            lines.append(
                f"Typical pods {kind}: assumed, because the cluster has {count_nouns(seen, 'such pod')} and "
                f"{demand['enough']} are needed to measure them."
            )
        else:
            lines.append(
                f"Typical pods {kind}: measured from {count_nouns(seen, 'pod')} of the cluster."
            )
    if demand["askingNothing"]:
        n = demand["askingNothing"]
        lines.append(
            f"{count_nouns(n, 'pod')} without any request for GPUs, CPU or memory {'is' if n == 1 else 'are'} "
            "not counted among the typical pods."
        )
    return lines


def describe_waiting(audit: Json) -> str:
    """Describe how many pods wait, and how much they request in all; empty when none waits."""
    waiting = audit["waiting"]
    if not waiting:
        return ""
    gpus = sum(pod["gpus"] for pod in waiting)
    cores = sum(pod["cpu"] for pod in waiting)
    wait = "waits and requests" if len(waiting) == 1 else "wait and request"
    of_cpu = f"{cores:,g} {'core' if cores == 1 else 'cores'}"
    return (
        f"{count_nouns(len(waiting), 'pod')} {wait} {count_nouns(gpus, 'GPU')} and {of_cpu} in all."
    )


def describe_not_judged(audit: Json) -> list[str]:
    """Describe in sentences the objects with mistakes, and what the audit does not evaluate."""
    lines = []
    for effect, (noun, of_one, of_several) in _EFFECTS.items():
        wrong = [one for one in audit["mistakes"] if one["effect"] == effect]
        if not wrong:
            continue
        lines.append(
            f"{count_nouns(len(wrong), noun)} {of_one if len(wrong) == 1 else of_several}:"
        )
        lines += [
            "  " + ": ".join(filter(None, map(one.get, ("object", "field", "problem"))))
            for one in wrong[:_MISTAKES_MAX]
        ]
        if len(wrong) > _MISTAKES_MAX:
            lines.append(f"  and {len(wrong) - _MISTAKES_MAX:,} more; -o json lists all.")
    if audit["uncounted"]:
        lines.append(_describe_uncounted(audit["uncounted"]))
    if audit["passedOver"]:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in audit["passedOver"].items())
        lines.append(f"Ignored: {counts}. Only nodes and existing pods count.")
    return lines


def _describe_gpus(one: Json) -> str:
    """Describe how many GPUs of a model there are, and, if plugins offer parts of them, how many parts."""
    gpus = f"{one['gpus']:,g} GPU" + ("" if one["gpus"] == 1 else "s")
    if one["parts"] == one["gpus"]:
        return gpus
    return f"{gpus}, offered as {one['parts']:,} parts (time-slicing, MPS or MIG),"


def _describe_uncounted(nodes: list[Json]) -> str:
    named = "; ".join(
        f"{one['node']} ({', '.join(f'{n:,} {resource}' for resource, n in one['offers'].items()) or 'by its label'})"
        for one in nodes[:_MISTAKES_MAX]
    )
    more = f"; and {len(nodes) - _MISTAKES_MAX:,} more" if len(nodes) > _MISTAKES_MAX else ""
    has = "has" if len(nodes) == 1 else "have"
    text = (
        f"{count_nouns(len(nodes), 'node')} {has} GPUs that Evenkeel cannot count, so no figure includes these GPUs: "
        f"{named}{more}."
    )
    # An answer about who uses what has no free capacity.
    cpu, memory = (
        sum(one["spare"][key] for one in nodes if "spare" in one) for key in ("cpu", "memory")
    )
    if write_short(cpu) == write_short(memory) == "0":
        return text
    there = "that node" if len(nodes) == 1 else "those nodes"
    return (
        f"{text} {write_short(cpu)} cores and {write_short(memory)} GiB of memory that count as no loss are on {there}; whether pods "
        "with such GPUs could use them is not known."
    )


def describe_prices(audit: Json) -> list[str]:
    """Describe the prices, and where each is from."""
    units, sources = audit["prices"], audit["priceSources"]
    lines = [
        f"A core: ${units['cpu-core']:g} a month ({sources['cpu-core']}).",
        f"A GiB of memory: ${units['memory-gib']:g} a month ({sources['memory-gib']}).",
    ]
    models = audit["gpuModels"]
    lines += [
        f"{one['model']}: {_describe_gpus(one)} at {write_dollars(one['price'])} ({one['source']})."
        for one in models[:_MODELS_MAX]
    ]
    if len(models) > _MODELS_MAX:
        lines.append(
            f"The prices of {count_nouns(len(models) - _MODELS_MAX, 'more model')}, each with a smaller share of "
            "the total, are in -o json."
        )
    lines += [
        f"--price {match} has no effect: no GPU here has such a model, and the units are {', '.join(UNITS)}."
        for match in audit["pricesUnused"]
    ]
    return [*lines, "To use your own prices: --prices FILE, or --price 'A100*80GB=1500'."]


def describe_filled(audit: Json) -> list[str]:
    """Describe how each mode filled up the cluster, and what a range means."""
    replay = audit["replay"]
    n_orders = replay["orders"]
    ranges = f" {_RANGES}" if n_orders > 1 else ""
    text = (
        f"Each mode starts from the present state and gets {count_nouns(replay['arrivals'], 'more pod')} in "
        f"{count_nouns(n_orders, 'order')}: copies of the running pods, each kind as often as it runs now. A pod that does "
        f"not fit is dropped, and no pod leaves. This is a simulation, not a promise.{ranges}"
    )
    return [text]


def list_held(one: Json) -> list[str]:
    """List what the nodes hold, by ``HELD``."""
    return [write_whole_range(one[key]) for key in HELD]


def list_modes(replay: Json) -> list[tuple[str, Json]]:
    """List the compared modes by name; ``default (keel)`` is one row if the default places as keel does."""
    rows = {one["mode"]: one for one in replay["modes"]}
    default, keel = rows.get(DEFAULT_MODE), rows.get(Mode.KEEL)
    if default is None or keel is None or default | {"mode": Mode.KEEL} != keel:
        return list(rows.items())
    names = {DEFAULT_MODE: f"{DEFAULT_MODE} ({Mode.KEEL})"}
    return [(names.get(name, name), one) for name, one in rows.items() if one is not keel]


def describe_moved(audit: Json) -> list[str]:
    """Describe how many pods were placed again, what the dollars include, which pods stayed and why."""
    replay = audit["replay"]
    stays = replay["stays"]
    n_orders = replay["orders"]
    ranges = f" {_RANGES}" if n_orders > 1 else ""
    verb = "is" if replay["moved"] == 1 else "are"
    lines = [
        f"{count_nouns(replay['moved'], 'pod')} {verb} placed again, in {count_nouns(n_orders, 'order')}.{ranges}"
    ]
    if audit["total"]["capacity"]["gpuCompute"]:
        lines.append(
            "The dollars include stranded cores and memory, and the price of a stranded GPU depends on its "
            "model and its free memory. So a mode that strands more GPUs can still strand fewer dollars."
        )
    if stays:
        shown = [f"{one['pods']:,} {one['reason']}" for one in stays[:_REASONS_MAX]]
        rest = sum(one["pods"] for one in stays[_REASONS_MAX:])
        shown += [f"{rest:,} for other reasons"] if rest else []
        stay = "stays on its node" if replay["stayed"] == 1 else "stay on their nodes"
        lines.append(f"{count_nouns(replay['stayed'], 'pod')} {stay}: {', '.join(shown)}.")
    if replay["withoutController"]:
        lines.append(
            f"Pods placed again that have no controller: {replay['withoutController']:,}. If such a pod is deleted, "
            "nothing creates it again."
        )
    left_over = [one["mode"] for one in replay["modes"] if max(one["inOrders"]["unplaced"])]
    if left_over:
        lines.append(
            f"With {', '.join(left_over)} some pods found no node: the figures of what is stranded then are of fewer "
            "placed pods, and less comparable."
        )
    return lines


def list_upcoming(one: Json) -> tuple[str, ...]:
    """List the cells for one more pod of a kind: a like pod, its node, what it would lose there, and why that node."""
    like = f"{one['like']} ({one['asks'] or 'requests nothing'}; {count_nouns(one['pods'], 'such pod')})"
    if not one["nodes"]:
        return like, "no node takes it", "", ""
    first = one["nodes"][0]
    loss = first["loss"]
    told = _describe_loss(loss) if loss else ""
    return like, first["node"], told, one["why"] or "No other node takes it."


def list_node(one: Json, uncounted: Json | None = None) -> list[str]:
    """List a row of the table of all nodes, with dashes for absent resources; ``uncounted`` is what labels show of GPUs."""
    capacity, used = one["capacity"], one["used"]
    has_cards = capacity["gpuCompute"] > 0
    shares = [
        f"{used[key] / capacity[key]:.0%}".removesuffix("%") if capacity[key] else "-"
        for key in TITLES
    ]
    cards = (
        [write_short(capacity["gpuCompute"]), f"{one['sharers']:,}"] if has_cards else ["-", "-"]
    )
    if uncounted is not None:
        cards[0] = describe_labels(uncounted)
    stranded = write_amount(one["stranded"]["gpuCompute"]) if has_cards else "-"
    models = ", ".join(one["models"]) or "-"
    return [one["name"], models, *cards, *shares, OUT if one["isClosed"] else stranded]


def describe_labels(one: Json) -> str:
    """Describe the number of GPUs in the labels of a node whose GPUs are not counted."""
    gpus = "?" if one["gpus"] is None else f"{one['gpus']:,}"
    return f"{gpus} (not counted)"


def _describe_loss(loss: Json) -> str:
    """Describe what a pod loses on a node; a term below 0 has a name of its own."""
    if loss["total"] <= 0 or not any(lost < 0 for lost in loss["terms"].values()):
        return weighed.write_loss(loss) if loss["total"] >= 0 else "nothing"
    return f"{weighed.write_loss(loss)} (below 0: less is lost with the pod there than without it)"
