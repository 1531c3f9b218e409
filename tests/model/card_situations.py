"""Hypothesis strategies: nodes with cards in all states, and pods with all of HAMi's words."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.oracles import hami as twin

MODELS = ["NVIDIA-Tesla T4", "NVIDIA A10G", "NVIDIA-A100-SXM4-80GB"]
POLICIES = [
    "binpack", "spread", "mutex", "numa", "topology-aware",
    "binpack,numa", "numa,binpack", "spread,numa", "binpack,spread", "numa,spread,binpack",
    "mutex,binpack", "mutex,topology-aware", "mutex,numa", "topology-aware,binpack", "spread,spread",
]  # fmt: skip


@st.composite
def cards(draw: st.DrawFn) -> list[twin.Card]:
    """1 to 9 cards, often alike, so that ties are common."""
    mixed = draw(st.booleans())
    figures = st.tuples(
        st.sampled_from([10, 2, 1, 0] if mixed else [10]),
        st.sampled_from([16384, 81920, 60, 0] if mixed else [16384]),
        st.sampled_from([100, 50, 150, 0] if mixed else [100]),
        st.sampled_from(MODELS if mixed else MODELS[:1]),
        st.sampled_from(["hami-core", "mps", "mig", ""] if mixed else ["hami-core"]),
        st.integers(0, 2),
        st.integers(0, 9),
        st.integers(0, 9),
    )
    rows = draw(st.lists(figures, min_size=1, max_size=9))
    order = draw(st.permutations(range(len(rows))))
    return [
        twin.Card(
            f"GPU-{index}", index, count, mem, cores, model, numa, mode,
            health=health < 9, cordoned=cordoned == 9,
        )
        for index, (count, mem, cores, model, mode, numa, health, cordoned) in zip(
            order, rows, strict=True
        )
    ]  # fmt: skip


@st.composite
def in_use(draw: st.DrawFn, given_cards: Sequence[twin.Card]) -> list[twin.Card]:
    """The same cards with some of each taken, full and overfull ones among them."""
    taken = st.tuples(
        st.sampled_from([0, 0, 0, 1, 2, 10]),
        st.sampled_from([0, 0.25, 0.5, 1, 1.1]),
        st.sampled_from([0, 0, 30, 50, 100]),
    )
    used = []
    for card in given_cards:
        sharers, share, cores = draw(taken)
        used.append(
            replace(card, used=sharers, used_mem=int(card.mem * share), used_cores=cores)
            if sharers
            else card
        )
    return used


@st.composite
def pods(draw: st.DrawFn) -> twin.Pod:
    """Up to 4 containers, init and sidecars first, and any of HAMi's annotations."""
    containers = []
    kinds = draw(st.lists(st.sampled_from(["init", "sidecar"]), max_size=2))
    kinds += ["app"] * draw(st.integers(1, 2))
    for kind in kinds:
        nums = draw(st.sampled_from([1, 1, 1, 1, 2, 2, 0, 3, 10]))
        by_share = draw(st.booleans())
        mem = 0 if by_share else draw(st.sampled_from([1, 3000, 8192, 16384, 40000]))
        percent = draw(st.sampled_from([1, 25, 50, 100])) if by_share else twin.PERCENT_UNSET
        cores = draw(st.sampled_from([0, 0, 30, 50, 100]))
        containers.append(twin.Container(kind, nums, mem, percent, cores))
    if not any(container.nums for container in containers):
        containers[-1] = replace(containers[-1], nums=1)
    seldom = st.integers(0, 4).map(lambda number: number == 4)
    uuids = st.sampled_from(["GPU-0", "GPU-1,GPU-2", " GPU-3 , GPU-0", "GPU-7,"])
    types = st.sampled_from(["T4", "a10g, tesla", "A100,", "H100"])
    return twin.Pod(
        tuple(containers),
        policy=draw(st.sampled_from(POLICIES)),
        numa_bind=draw(st.booleans()),
        use_type=draw(types) if draw(seldom) else "",
        nouse_type=draw(types) if draw(seldom) else "",
        use_uuid=draw(uuids) if draw(seldom) else "",
        nouse_uuid=draw(uuids) if draw(seldom) else "",
        vgpu_mode=draw(st.sampled_from(["hami-core", "mps", "hami-core,mig"]))
        if draw(seldom)
        else None,
        weights=draw(st.sampled_from([(1, 1, 1), (1, 1, 1), (0, 0, 1), (1, 3, 7), (5, 0, 2)])),
    )


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[twin.Card], twin.Pod]:
    """A node and a pod that may or may not fit on it."""
    return draw(nodes()), draw(pods())


def nodes() -> st.SearchStrategy[list[twin.Card]]:
    """Cards of one node, in use."""
    return cards().flatmap(in_use)
