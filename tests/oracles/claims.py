"""What a pod with a node holds on its cards, the slow and obvious way, from raw objects alone."""

from collections import Counter
from typing import Any

Json = dict[str, Any]
ALLOCATED = "hami.io/vgpu-devices-allocated"
GPU = "nvidia.com/gpu"
FIGURES = ("cores", "mib", "slots")
Use = tuple[str, int, int]


def held(
    pod: Json, cards: dict[str, Json], gone: dict[str, Json] | None = None
) -> dict[str, tuple[int, ...]]:
    """(cores, MiB, slots) by card, at the pod's worst moment; ``cards`` as the node registers them.

    ``gone`` are cards that left its register while the pod named them: it holds nothing for them elsewhere.

    A claim counts as far as the containers' own requests go. What a container asks beyond the cards
    that it names of the node is on the first cards that nobody names, and then on the first of others.
    """
    init = pod["spec"].get("initContainers", [])
    containers = [*init, *pod["spec"]["containers"]]
    done = any(
        one["type"] == "Initialized" and one["status"] == "True"
        for one in pod.get("status", {}).get("conditions") or ()
    )
    stays = [_stays(init, i) for i in range(len(containers))]
    at_first = [_asked(one) for one in containers]
    told = _told(pod, at_first)
    asks = [ask if stays[i] or not done else {} for i, ask in enumerate(at_first)]
    return of_containers(list(zip(stays, asks, told, strict=True)), cards, gone)


def of_containers(
    containers: list[tuple[bool, dict[str, int], list[Use]]],
    cards: dict[str, Json],
    gone: dict[str, Json] | None = None,
) -> dict[str, tuple[int, ...]]:
    """As ``held``, of containers that stay or not, ask something or nothing, and tell some cards."""
    ever = (gone or {}) | cards
    stays, asks = [one[0] for one in containers], [one[1] for one in containers]
    slots = [_counted(slot, ask) for _, ask, slot in containers]
    named = [uuid for slot in slots for uuid, *_ in slot]
    unnamed_first = [u for u in cards if u not in named] + [u for u in cards if u in named]
    for slot, ask in zip(slots, asks, strict=True):
        own = [uuid for uuid, *_ in slot]
        if not any(ever.get(uuid.split("[")[0], {}).get("mode") == "mig" for uuid in own):
            missing = ask.get("cards", 0) - len([uuid for uuid in own if uuid in ever])
            others = [uuid for uuid in unnamed_first if uuid not in own]
            slot += [(uuid, 2**31, 100) for uuid in others[:missing]]
    shares = [
        {
            uuid: Counter(
                cores=min(cores, ask["cores"]),
                mib=min(mib, max(1, ask["mib"] or cards[uuid]["devmem"] * ask["percent"] // 100)),
                slots=1,
            )
            for uuid, mib, cores in slot
            if uuid in cards
        }
        for slot, ask in zip(slots, asks, strict=True)
    ]
    staying = [i for i in range(len(containers)) if stays[i]]
    moments = [staying] + [
        [j for j in staying if j < i] + [i] for i in range(len(containers)) if not stays[i]
    ]
    worst: dict[str, Counter[str]] = {}
    for moment in moments:
        for uuid in cards:
            there = sum((shares[i].get(uuid, Counter()) for i in moment), Counter[str]())
            worst[uuid] = worst.get(uuid, Counter()) | there
    return {
        uuid: tuple(most[figure] for figure in FIGURES)
        for uuid, most in worst.items()
        if most["slots"]
    }


def _stays(init: list[Json], i: int) -> bool:
    return i >= len(init) or init[i].get("restartPolicy") == "Always"


def _asked(container: Json) -> dict[str, int]:
    """Cards, and on each MiB or percent of the memory, and cores; empty when none is asked."""
    limits = (container.get("resources") or {}).get("limits") or {}
    asked = {name.partition("/")[2]: int(n) for name, n in limits.items() if "nvidia.com/" in name}
    if not asked.get("gpu"):
        return {}
    mib, percent = asked.get("gpumem"), asked.get("gpumem-percentage")
    whole = percent == 100 or (mib is None and percent is None)
    return {
        "cards": asked["gpu"],
        "mib": mib or 0,
        "percent": 0 if mib else percent or 100,
        "cores": min(100, asked.get("gpucores", 100 if whole else 0)),
    }


def _told(pod: Json, asks: list[dict[str, int]]) -> list[list[Use]]:
    """The claim slot by slot, all empty when it cannot be read."""
    text = (pod["metadata"].get("annotations") or {}).get(ALLOCATED, "")
    slots: list[list[Use]] = []
    for slot in text.removesuffix(";").split(";") if text else []:
        slots.append([])
        for record in slot.split(":"):
            parts = record.split(",")
            if not record:
                continue
            if len(parts) < 4 or not all(n.isdigit() and int(n) < 2**31 for n in parts[2:4]):
                return [[] for _ in asks]
            slots[-1].append((parts[0], int(parts[2]), int(parts[3])))
    if len(slots) == len(asks):
        return slots
    # HAMi 2.10.0 tells only of the containers that have cards.
    told = [slot for slot in slots if slot]
    return [told.pop(0) if ask and told else [] for ask in asks]


def _counted(slot: list[Use], ask: dict[str, int]) -> list[Use]:
    """The first record of each of the first cards, as many as are asked."""
    first = {use[0]: use for use in reversed(slot)}
    order = [uuid for i, (uuid, *_) in enumerate(slot) if uuid not in [u[0] for u in slot[:i]]]
    return [first[uuid] for uuid in order[: ask.get("cards", 0)]]
