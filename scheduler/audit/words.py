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
# What the nodes hold once the cluster is filled up.
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
# What the last three mean; the sentences above the figures say it of the others.
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
# What becomes of one object with mistakes, and of several.
_EFFECTS = {
    unread.LEFT_OUT: ("object", "has mistakes and is left out", "have mistakes and are left out"),
    unread.STAYS: (
        "pod",
        "has mistakes and stays on its node with what can be read of it",
        "have mistakes and stay on their nodes with what can be read of them",
    ),
}
# In the place of what a node strands.
OUT = "out"
_REASONS_MAX = 6
_MISTAKES_MAX = 10
_MODELS_MAX = 12
_RANGES = "A range goes from the lowest to the highest result of these orders."


def amount(value: float) -> str:
    """With one decimal, of thousands without."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}"


def short(value: float) -> str:
    """As ``amount``, without a decimal that is 0."""
    return amount(value).removesuffix(".0")


def dollars(value: float) -> str:
    """Whole dollars."""
    return f"${value:,.0f}"


def count_nouns(count: int, one: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def spread(values: list[float]) -> str:
    """The least and the most, as one figure where they read the same."""
    low, high = (_plain(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def whole(values: list[float]) -> str:
    """As ``spread``, in whole units."""
    return spread([round(value) for value in values])


def _plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else amount(value)


def about(audit: Json) -> str:
    """Of what, when and by which version."""
    told = audit["about"]
    return f"{told['source']}, {told['made']}, Evenkeel {told['evenkeel']}"


def headline(audit: Json) -> list[str]:
    """What could be used and is not, then what is stranded."""
    total = audit["total"]
    value = total["value"]
    return [
        (
            f"Of {dollars(value['capacity'])} a month, {dollars(value['usable'])} is usable and unused: "
            f"{_listed(total['usable'])}.{_not_counted(audit['uncounted'])}"
        ),
        (
            f"{dollars(value['stranded'])} a month is stranded, which means that typical pods cannot use it "
            f"although it is free: {_listed(total['stranded'])}."
        ),
    ]


def _not_counted(nodes: list[Json]) -> str:
    """How many GPUs the figures leave out, as far as labels tell; empty for none."""
    if not nodes:
        return ""
    gpus = sum(one["gpus"] or 0 for one in nodes)
    unknown = sum(one["gpus"] is None for one in nodes)
    labelled = f", {count_nouns(gpus, 'GPU')} by their labels" if gpus else ""
    others = f" and an unknown number on {count_nouns(unknown, 'node')}" if gpus and unknown else ""
    return f" Not counted: the GPUs of {count_nouns(len(nodes), 'more node')}{labelled}{others}."


def _listed(amounts: Json) -> str:
    return (
        f"{short(amounts['gpuCompute'])} GPUs, {short(amounts['cpu'])} cores and "
        f"{short(amounts['memory'])} GiB of memory"
    )


def of_free(audit: Json) -> str:
    """Which part of the free GPUs typical pods cannot use; empty where none is free."""
    total = audit["total"]
    free, dead = total["free"]["gpuCompute"], total["dead"]["gpuCompute"]
    if not free:
        return ""
    stranded = total["stranded"]["gpuCompute"]
    n, gpus = short(free), "GPU" if short(free) == "1" else "GPUs"
    if short(stranded) == "0":
        return f"Typical GPU pods can use all of the {n} free {gpus}."
    text = f"Typical GPU pods cannot use {_percent(stranded / free)} of the {n} free {gpus}, on average over these pods"
    if short(dead) == "0":
        return f"{text}."
    return f"{text}. {short(dead)} of the free {gpus} cannot be used by any typical GPU pod."


def _percent(share: float) -> str:
    """A share above 0 in percent."""
    return "less than 1%" if share < 0.005 else f"{share:.0%}"


def judged_by(audit: Json) -> list[str]:
    """Sentences on whose demand the figures rest."""
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


def waits(audit: Json) -> str:
    """How many pods wait, and for how much in all; empty when none waits."""
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


def not_judged(audit: Json) -> list[str]:
    """Sentences on what has mistakes, and on what the audit does not evaluate."""
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
        lines.append(_uncounted(audit["uncounted"]))
    if audit["passedOver"]:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in audit["passedOver"].items())
        lines.append(f"Ignored: {counts}. Only nodes and existing pods count.")
    return lines


def _gpus(one: Json) -> str:
    """How many GPUs of a model there are; where plugins share each, also how many they report."""
    gpus = f"{one['gpus']:,g} GPU" + ("" if one["gpus"] == 1 else "s")
    if one["replicas"] == one["gpus"]:
        return gpus
    return f"{gpus}, reported as {one['replicas']:,} replicas (time-slicing or MPS),"


def _uncounted(nodes: list[Json]) -> str:
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
    # Of who uses what there is no free capacity to tell.
    cpu, memory = (
        sum(one["spare"][key] for one in nodes if "spare" in one) for key in ("cpu", "memory")
    )
    if short(cpu) == short(memory) == "0":
        return text
    there = "that node" if len(nodes) == 1 else "those nodes"
    return (
        f"{text} {short(cpu)} cores and {short(memory)} GiB of memory that count as no loss are on {there}; whether pods "
        "with such GPUs could use them is not known."
    )


def priced_by(audit: Json) -> list[str]:
    """The prices, and where each is from."""
    units, sources = audit["prices"], audit["priceSources"]
    lines = [
        f"A core: ${units['cpu-core']:g} a month ({sources['cpu-core']}).",
        f"A GiB of memory: ${units['memory-gib']:g} a month ({sources['memory-gib']}).",
    ]
    models = audit["gpuModels"]
    lines += [
        f"{one['model']}: {_gpus(one)} at {dollars(one['price'])} ({one['source']})."
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


def filled(audit: Json) -> list[str]:
    """How each mode filled up the cluster, and what a range is."""
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
    """What the nodes hold, by ``HELD``."""
    return [whole(one[key]) for key in HELD]


def rows_of_modes(replay: Json) -> list[tuple[str, Json]]:
    """The compared modes by name; ``default (keel)`` is one row where the default places as keel does."""
    rows = {one["mode"]: one for one in replay["modes"]}
    default, keel = rows.get(DEFAULT_MODE), rows.get(Mode.KEEL)
    if default is None or keel is None or default | {"mode": Mode.KEEL} != keel:
        return list(rows.items())
    names = {DEFAULT_MODE: f"{DEFAULT_MODE} ({Mode.KEEL})"}
    return [(names.get(name, name), one) for name, one in rows.items() if one is not keel]


def moved(audit: Json) -> list[str]:
    """How many pods were placed again, what the dollars include, which pods stayed and why."""
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


def upcoming(one: Json) -> tuple[str, ...]:
    """One more pod of a kind: a pod like it, the node it would go to, what it would lose there, and why that node."""
    like = f"{one['like']} ({one['asks'] or 'requests nothing'}; {count_nouns(one['pods'], 'such pod')})"
    if not one["nodes"]:
        return like, "no node takes it", "", ""
    first = one["nodes"][0]
    loss = first["loss"]
    told = _lost(loss) if loss else ""
    return like, first["node"], told, one["why"] or "No other node takes it."


def node(one: Json, uncounted: Json | None = None) -> list[str]:
    """A row of the table of all nodes; what a node has none of is a dash. ``uncounted`` is what labels tell of its GPUs."""
    capacity, used = one["capacity"], one["used"]
    has_cards = capacity["gpuCompute"] > 0
    shares = [
        f"{used[key] / capacity[key]:.0%}".removesuffix("%") if capacity[key] else "-"
        for key in TITLES
    ]
    cards = [short(capacity["gpuCompute"]), f"{one['sharers']:,}"] if has_cards else ["-", "-"]
    if uncounted is not None:
        cards[0] = of_uncounted(uncounted)
    stranded = amount(one["stranded"]["gpuCompute"]) if has_cards else "-"
    models = ", ".join(one["models"]) or "-"
    return [one["name"], models, *cards, *shares, OUT if one["isClosed"] else stranded]


def of_uncounted(one: Json) -> str:
    """How many GPUs the labels of a node tell, and how these are shared: ``8 (MIG)``."""
    gpus = "?" if one["gpus"] is None else f"{one['gpus']:,}"
    return f"{gpus} ({one['sharing'] or 'not counted'})"


def _lost(loss: Json) -> str:
    """What a pod loses on a node; a term below 0 is named for what it is."""
    if loss["total"] <= 0 or not any(lost < 0 for lost in loss["terms"].values()):
        return weighed.write_loss(loss) if loss["total"] >= 0 else "nothing"
    return f"{weighed.write_loss(loss)} (below 0: less is lost with the pod there than without it)"
