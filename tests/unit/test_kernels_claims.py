"""The kernel that says what a pod holds on cards, against its twin; also of very many containers."""

from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import hami, wire
from scheduler.api.cards import CardUse, Slots
from scheduler.api.pods import gpus
from scheduler.devices.hami import HamiCards
from scheduler.kernels.devices import told_cards as kernel
from scheduler.state import told_cards
from scheduler.state.cluster import Cluster
from tests import make
from tests.operator import attacks
from tests.oracles import claims as oracle

INIT, SIDECAR, APP = gpus.ContainerKind
MEMORY = {"GPU-a": 1000, "GPU-b": 24576, "GPU-c": 999}
asks = st.builds(
    gpus.ContainerAsk,
    st.sampled_from(gpus.ContainerKind),
    st.sampled_from([0, 1, 2, 9, 2**31]),
    st.sampled_from([0, 1, 700]),
    st.sampled_from([0, 30, 100]),
    st.sampled_from([0, 10, 100]),
    # Hypothesis fills all fields that are not given.
    core_percent=st.just(0),
)
uses = st.builds(
    CardUse,
    st.sampled_from(
        [*MEMORY, "GPU-c[0-1]", "GPU-gone", "GPU-carved", "GPU-carved[1]", "elsewhere"]
    ),
    st.sampled_from([0, 5, 2000, 10**30]),
    st.sampled_from([0, 10, 100]),
    # Hypothesis fills all fields that are not given.
    model=st.just(""),
    place=st.none(),
)
containers = st.lists(st.tuples(asks, st.lists(uses, max_size=4).map(tuple)), max_size=6)


def node(last: str = "hami-core") -> tuple[Cluster, dict[str, int]]:
    """A node of three cards behind another, the last in some mode, and the rows of what a pod may tell."""
    cards = [
        make.card(uuid=uuid, index=i, mib=mib, mode=last if uuid == "GPU-c" else "hami-core")
        for i, (uuid, mib) in enumerate(MEMORY.items())
    ]
    cluster = make.cluster(nodes=[make.hami_node(name="a"), make.hami_node(name="b", cards=cards)])
    start = cluster.registers.list_card_rows(cluster.nodes.find_row("b"))[0]
    rows = {uuid: d for d, uuid in enumerate(MEMORY, start)}
    return cluster, rows | {"GPU-gone": kernel.GONE, "GPU-carved": kernel.GONE_CARVED}


def held(
    pod: list[tuple[gpus.ContainerAsk, tuple[CardUse, ...]]],
    cluster: Cluster,
    rows: dict[str, int],
    *,
    initialized: bool = False,
) -> dict[str, tuple[int, ...]]:
    most = tuple(ask for ask, _ in pod)
    claim = told_cards.limit_claim(tuple(told for _, told in pod), most, initialized=initialized)
    figures = np.array(most, np.int64).reshape(-1, len(gpus.ContainerAsk._fields)).T.copy()
    work = np.full((len(MEMORY), kernel.N_WORK), 7, np.int64)
    told = told_cards.read_told(claim, rows, HamiCards("").find_whole, cluster.cards.find_part)
    n = kernel.hold_cards(cluster.cards.columns, figures, told, initialized, rows["GPU-a"], work)
    return {cluster.cards.find_uuid(d): tuple(rest) for d, *rest in work[:n, :4].tolist()}


@settings(deadline=None)
@given(pod=containers, last=st.sampled_from(["hami-core", "mig"]), initialized=st.booleans())
def test_a_pod_holds_what_its_twin_holds_whatever_its_containers_ask_and_tell(
    pod: list[tuple[gpus.ContainerAsk, tuple[CardUse, ...]]], last: str, initialized: bool
) -> None:
    cards: dict[str, dict[str, Any]] = {uuid: {"devmem": mib} for uuid, mib in MEMORY.items()}
    cards["GPU-c"]["mode"] = last
    gone = {"GPU-gone": {"mode": "hami-core"}, "GPU-carved": {"mode": "mig"}}
    slots = [
        (
            ask.kind != gpus.ContainerKind.INIT,
            {}
            if not ask.cards or (initialized and ask.kind == gpus.ContainerKind.INIT)
            else {"cards": ask.cards, "mib": ask.mem_mib, "percent": ask.mem_percent, "cores": ask.cores},
            [(use.uuid, use.mem_mib, use.cores) for use in told],
        )
        for ask, told in pod
    ]  # fmt: skip
    expected = oracle.of_containers(slots, cards, gone)
    cluster, rows = node(last)
    assert held(pod, cluster, rows, initialized=initialized) == expected


def test_thousands_of_containers_that_ask_all_cards_are_added_up() -> None:
    cluster, rows = node()
    ask = gpus.ContainerAsk(gpus.ContainerKind.APP, 30_000, 1, 0, 1)
    pod = [(ask, (CardUse("GPU-b", 1, 1),)), *[(ask, ())] * 8000]
    assert held(pod, cluster, rows) == dict.fromkeys(MEMORY, (8001, 8001, 8001))


@pytest.mark.parametrize("n_cards", [1, 30_000, 10**15])
def test_a_container_holds_no_more_cards_than_there_are(n_cards: int) -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=3)])
    pod = cluster.see_pod(make.pod(node="n", gpu=n_cards, gpumem=1))
    assert pod is not None
    assert len(cluster.read_held(pod)) == min(n_cards, 3)


def test_a_pod_that_claims_thousands_of_cards_holds_what_it_asks_and_is_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hami, "_read_use", lambda *_: pytest.fail("a record was read"))
    cluster = Cluster()
    cluster.see_node(make.hami_node(name="gpu-00", cards=[make.card(uuid="GPU-a")]))
    (manifest, *_) = attacks.named("tenant", 0.1)
    pod = cluster.see_pod(msgspec.convert(manifest, wire.Pod))
    assert pod is not None
    start = cluster.registers.list_card_rows(0)[0]
    assert cluster.read_held(pod) == {start: (0, 1, 1)}
    assert "has more than 1000 cards, the maximum" in str(cluster.find_claim_problem(pod))
    assert not pod.claim


A, B = partial(CardUse, "GPU-a"), partial(CardUse, "GPU-b")


@pytest.mark.parametrize(
    ("kinds", "slots", "running", "afterwards"),
    [
        pytest.param(
            (APP, APP), ((A(100, 10),), (A(200, 20),)),
            {"GPU-a": (30, 300, 2)}, {"GPU-a": (30, 300, 2)}, id="apps add up",
        ),
        pytest.param(
            (INIT, APP), ((A(500, 5),), (A(200, 20),)),
            {"GPU-a": (20, 500, 1)}, {"GPU-a": (20, 200, 1)}, id="init and app each have a maximum",
        ),
        pytest.param(
            (INIT, INIT, APP), ((A(100, 0),), (A(300, 0),), ()),
            {"GPU-a": (0, 300, 1)}, {}, id="the largest init counts, once",
        ),
        pytest.param(
            (INIT, APP), ((A(100, 10),), (B(200, 20),)),
            {"GPU-a": (10, 100, 1), "GPU-b": (20, 200, 1)}, {"GPU-b": (20, 200, 1)},
            id="init on another card",
        ),
        pytest.param(
            (SIDECAR, INIT, APP), ((A(100, 10),), (A(400, 10),), (A(200, 20),)),
            {"GPU-a": (30, 500, 2)}, {"GPU-a": (30, 300, 2)}, id="init runs on top of the sidecar before it",
        ),
        pytest.param(
            (INIT, SIDECAR, APP), ((A(400, 10),), (A(100, 10),), (A(200, 20),)),
            {"GPU-a": (30, 400, 2)}, {"GPU-a": (30, 300, 2)}, id="init before the sidecar runs alone",
        ),
    ],
)  # fmt: skip
def test_a_pod_is_charged_its_worst_moment_per_card(
    kinds: tuple[gpus.ContainerKind, ...],
    slots: Slots,
    running: dict[str, tuple[int, int, int]],
    afterwards: dict[str, tuple[int, int, int]],
) -> None:
    """``running`` while init containers may still run, ``afterwards`` once they are done."""
    asks = tuple(
        gpus.ContainerAsk(kind, len(uses), 1000, 0, 100)
        for kind, uses in zip(kinds, slots, strict=True)
    )
    cluster, rows = node()
    pod = list(zip(asks, slots, strict=True))
    for initialized, wanted in ((False, running), (True, afterwards)):
        assert held(pod, cluster, rows, initialized=initialized) == wanted
