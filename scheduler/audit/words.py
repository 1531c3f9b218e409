"""What an audit comes to, in sentences and cells that table and page have in common."""

from __future__ import annotations

from typing import Any

from scheduler.audit import unread
from scheduler.cycle.advice import weighed

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
    "dead": "of it dead",
    "spare": "spare",
    "closed": "closed",
}
_EFFECTS = {
    unread.LEFT_OUT: "left out",
    unread.STAYS: "that stay where they are, with what can be read of them",
}
_REASONS_MAX = 6
_MISTAKES_MAX = 10
_MODELS_MAX = 12


def amount(value: float) -> str:
    """With one decimal, of thousands without."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}"


def short(value: float) -> str:
    """As ``amount``, without a decimal that is 0."""
    return amount(value).removesuffix(".0")


def dollars(value: float) -> str:
    """Whole dollars."""
    return f"${value:,.0f}"


def counted(count: int, one: str) -> str:
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
            f"{dollars(value['usable'])} a month is usable and unused: {_listed(total['usable'])}, "
            f"of {dollars(value['capacity'])} in all."
        ),
        (
            f"{dollars(value['stranded'])} a month is stranded, free but of no use to the typical pod: "
            f"{_listed(total['stranded'])}."
        ),
    ]


def _listed(amounts: Json) -> str:
    return (
        f"{short(amounts['gpuCompute'])} GPUs, {short(amounts['cpu'])} cores and "
        f"{short(amounts['memory'])} GiB of memory"
    )


def of_free(audit: Json) -> str:
    """Which part of the free GPUs is of no use; empty where none is free."""
    total = audit["total"]
    free, dead = total["free"]["gpuCompute"], total["dead"]["gpuCompute"]
    if not free:
        return ""
    share = total["stranded"]["gpuCompute"] / free
    none = f"{short(dead)} no typical pod can take at all" if short(dead) != "0" else ""
    told = f"Of {short(free)} free GPUs a typical GPU pod cannot take {share:.0%}"
    return f"{told}; {none}." if none else f"{told}."


def judged_by(audit: Json) -> list[str]:
    """Sentences on whose demand the figures rest."""
    demand, lines = audit["demand"], []
    for key, kind in (("gpuPods", "with GPUs"), ("otherPods", "without GPUs")):
        seen = demand[key]["seen"]
        if demand[key]["assumed"]:
            lines.append(
                f"Seen: {counted(seen, 'pod')} {kind}, fewer than {demand['enough']}: "
                "judged by assumed ones instead."
            )
        else:
            lines.append(f"Judged by the {counted(seen, 'pod')} {kind} that were seen.")
    if demand["askingNothing"]:
        lines.append(
            f"Not counted among them: {counted(demand['askingNothing'], 'pod')} without any request for GPUs, "
            "CPU or memory."
        )
    return lines


def waits(audit: Json) -> str:
    """How many pods wait, and for how much in all; empty when none waits."""
    waiting = audit["waiting"]
    if not waiting:
        return ""
    gpus = sum(pod["gpus"] for pod in waiting)
    cores = sum(pod["cpu"] for pod in waiting)
    return f"Waiting: {counted(len(waiting), 'pod')}, for {counted(gpus, 'GPU')} and {cores:,g} cores in all."


def not_judged(audit: Json) -> list[str]:
    """Sentences on what has mistakes, and on what the audit does not look at."""
    lines = []
    for effect, told in _EFFECTS.items():
        wrong = [one for one in audit["mistakes"] if one["effect"] == effect]
        if not wrong:
            continue
        lines.append(f"{counted(len(wrong), 'object')} with mistakes {told}:")
        lines += [
            "  " + ": ".join(filter(None, map(one.get, ("object", "field", "problem"))))
            for one in wrong[:_MISTAKES_MAX]
        ]
        if len(wrong) > _MISTAKES_MAX:
            lines.append(f"  and {len(wrong) - _MISTAKES_MAX:,} more, which -o json names.")
    if audit["uncounted"]:
        lines.append(_uncounted(audit["uncounted"]))
    if audit["passedOver"]:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in audit["passedOver"].items())
        lines.append(f"Passed over: {counts}: audit judges nodes and pods that exist.")
    return lines


def _gpus(one: Json) -> str:
    """How many GPUs of a model there are; where plugins share each, also how many they report."""
    gpus = f"{one['gpus']:,g} GPU" + ("" if one["gpus"] == 1 else "s")
    if one["replicas"] == one["gpus"]:
        return gpus
    return f"{gpus}, reported as {one['replicas']:,} (time-slicing or MPS; each is a part of its card),"


def _uncounted(nodes: list[Json]) -> str:
    named = "; ".join(
        f"{one['node']} ({', '.join(f'{n:,} {resource}' for resource, n in one['offers'].items()) or 'by its label'})"
        for one in nodes[:_MISTAKES_MAX]
    )
    more = f"; and {len(nodes) - _MISTAKES_MAX:,} more" if len(nodes) > _MISTAKES_MAX else ""
    has = "has" if len(nodes) == 1 else "have"
    return (
        f"{counted(len(nodes), 'node')} {has} GPUs that are not counted, and no figure here is about them: "
        f"{named}{more}."
    )


def priced_by(audit: Json) -> list[str]:
    """What GPUs were counted at, and where that is from."""
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
            f"And {counted(len(models) - _MODELS_MAX, 'model')} more, of which less is there."
        )
    lines += [
        f"--price {match} counts for nothing: it is no unit, and no GPU here is called so."
        for match in audit["pricesUnused"]
    ]
    return [*lines, "Prices of your own: --prices FILE, or --price 'A100*80GB=1500'."]


def filled(audit: Json) -> list[str]:
    """With how many pods the cluster was filled up, of which kinds, and what a range is."""
    replay = audit["replay"]
    n_orders = replay["orders"]
    ranges = " A range is from the least to the most of them." if n_orders > 1 else ""
    text = (
        f"From the present state, with {counted(replay['arrivals'], 'more pod')} like those that run, each kind as "
        f"often as it runs now, in {counted(n_orders, 'order')}: what does not fit is dropped, and no pod "
        f"leaves. It is a replay, not a promise.{ranges}"
    )
    return [text]


def held(one: Json) -> list[str]:
    """What the nodes hold, by ``HELD``."""
    return [whole(one[key]) for key in HELD]


def moved(audit: Json) -> list[str]:
    """How many pods were placed again, what the figures of it are of, which pods stayed and why."""
    replay = audit["replay"]
    stays = replay["stays"]
    n_orders = replay["orders"]
    ranges = "; a range is from the least to the most of them" if n_orders > 1 else ""
    orders = counted(n_orders, "order")
    lines = [f"{counted(replay['moved'], 'pod')} placed again, in {orders}{ranges}."]
    if audit["total"]["capacity"]["gpuCompute"]:
        lines.append(
            "Dollars are of stranded cores and memory too, and a GPU counts by its model and by what is free of "
            "its memory: a mode that strands more GPUs may cost less."
        )
    if stays:
        shown = [f"{one['pods']:,} {one['reason']}" for one in stays[:_REASONS_MAX]]
        rest = sum(one["pods"] for one in stays[_REASONS_MAX:])
        shown += [f"{rest:,} for other reasons"] if rest else []
        verb = "stays" if replay["stayed"] == 1 else "stay"
        lines.append(f"{counted(replay['stayed'], 'pod')} {verb}: {', '.join(shown)}.")
    if replay["withoutController"]:
        lines.append(
            f"{replay['withoutController']:,} of those placed again without a controller: "
            "if deleted, nothing would create them anew."
        )
    left_over = [one["mode"] for one in replay["modes"] if max(one["inOrders"]["unplaced"])]
    if left_over:
        lines.append(
            f"With {', '.join(left_over)} some found no place: less is stranded there because less is placed."
        )
    return lines


def upcoming(one: Json) -> tuple[str, ...]:
    """Of one more pod of a kind: what is like it, where it goes, what it loses there and of what, and why there."""
    like = f"{one['asks'] or 'nothing'}, as {counted(one['pods'], 'pod')} like {one['like']}"
    if not one["nodes"]:
        return like, "nowhere: no node takes it", "", ""
    first = one["nodes"][0]
    loss = first["loss"]
    told = _lost(loss) if loss else ""
    return like, first["node"], told, one["why"] or "It is the only node that takes it."


def node(one: Json) -> list[str]:
    """A row of the table of all nodes; what a node has none of is a dash."""
    capacity, used = one["capacity"], one["used"]
    has_cards = capacity["gpuCompute"] > 0
    shares = [
        f"{used[key] / capacity[key]:.0%}".removesuffix("%") if capacity[key] else "-"
        for key in TITLES
    ]
    cards = [short(capacity["gpuCompute"]), f"{one['sharers']:,}"] if has_cards else ["-", "-"]
    stranded = amount(one["stranded"]["gpuCompute"]) if has_cards else "-"
    models = ", ".join(one["models"]) or "-"
    return [one["name"], models, *cards, *shares, "closed" if one["isClosed"] else stranded]


def _lost(loss: Json) -> str:
    """What a pod loses on a node; a term below 0 is named for what it is."""
    if loss["total"] <= 0 or not any(lost < 0 for lost in loss["terms"].values()):
        return weighed.said(loss) if loss["total"] >= 0 else "nothing"
    return f"{weighed.said(loss)} (below 0: what it puts to use)"
