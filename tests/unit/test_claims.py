"""A claim counts as far as the pod's own requests go, and no further."""

from collections.abc import Container
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduler.api import hami, names, wire
from scheduler.api.cards import list_uses
from scheduler.api.pods import gpus
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make
from tests.oracles import claims as oracle

CARDS = (15360, 24576, 999)
# Up to HAMi 2.9 the second-last is a part of a card in MIG mode.
UUIDS = [*(f"node-GPU-{i}" for i in range(len(CARDS))), "elsewhere", "node-GPU-2[0-1]", ""]
INIT, SIDECAR, APP = gpus.ContainerKind

figures: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"gpu": st.integers(1, 4)},
        optional={
            "gpumem": st.sampled_from([0, 1, 500, 9000, 40000]),
            "gpumem_percent": st.sampled_from([0, 1, 30, 50, 100]),
            "gpucores": st.sampled_from([0, 10, 100, 150]),
        },
    ),
)
records = st.builds(
    "{},NVIDIA,{},{}".format,
    st.sampled_from(UUIDS),
    st.sampled_from([0, 1, 500, 7680, 15360, 10**6]),
    st.sampled_from([0, 10, 30, 100, 10**6]),
)
texts = st.one_of(
    st.lists(st.lists(records, max_size=4), max_size=5).map(
        lambda slots: "".join("".join(f"{one}:" for one in slot) + ";" for slot in slots)
    ),
    st.sampled_from(["", "x", "a,b,c;", "node-GPU-0,NVIDIA,-1,0:;", "node-GPU-0,NVIDIA,1,1e9:;"]),
)


def cluster_with(pod: wire.Pod, last: str = "hami-core", lost: Container[int] = ()) -> Cluster:
    """One pod on a node with three cards, the last of them in some mode; some are lost under the pod."""
    modes = ("hami-core", "hami-core", last)
    cards = [
        make.card(uuid=f"node-GPU-{i}", index=i, mib=mib, mode=mode)
        for i, (mib, mode) in enumerate(zip(CARDS, modes, strict=True))
    ]
    cluster = Cluster()
    cluster.see_node(make.hami_node(cards=cards))
    cluster.see_pod(pod)
    cluster.see_node(make.hami_node(cards=[card for i, card in enumerate(cards) if i not in lost]))
    return cluster


def charged_by_twin(
    pod: wire.Pod, last: str = "hami-core", lost: Container[int] = ()
) -> dict[str, tuple[int, ...]]:
    registered: dict[str, dict[str, Any]] = {
        f"node-GPU-{i}": {"devmem": mib} for i, mib in enumerate(CARDS)
    }
    registered["node-GPU-2"]["mode"] = last
    gone = {f"node-GPU-{i}": registered.pop(f"node-GPU-{i}") for i in range(3) if i in lost}
    return oracle.held(msgspec.to_builtins(pod), registered, gone)


def used(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    columns = cluster.cards.columns
    return {
        cluster.cards.find_uuid(d): tuple(columns.used[:, d].tolist())
        for d in cluster.registers.list_card_rows(0)
        if columns.used[:, d].any()
    }


@given(
    init=st.lists(st.tuples(figures, st.booleans()), max_size=2),
    app=st.lists(figures, min_size=1, max_size=3),
    text=texts,
    done=st.booleans(),
    last=st.sampled_from(["hami-core", "mig"]),
    lost=st.sets(st.integers(0, 2)),
)
@example(
    init=[({"gpu": 1}, False)],
    app=[{}],
    text="node-GPU-0,NVIDIA,1,1:;;",
    done=True,
    last="mig",
    lost=set(),
)
def test_a_pod_is_charged_its_claim_as_far_as_it_asks(
    init: list[tuple[dict[str, Any], bool]],
    app: list[dict[str, Any]],
    text: str,
    done: bool,
    last: str,
    lost: set[int],
) -> None:
    """The same as the slow twin's, whatever is asked and claimed; and a problem with it has words."""
    pod = make.pod(
        name="p",
        node="node",
        init_containers=[
            make.container(name=f"i{i}", sidecar=sidecar, **asked)
            for i, (asked, sidecar) in enumerate(init)
        ],
        containers=[make.container(name=f"a{i}", **asked) for i, asked in enumerate(app)],
        annotations={names.HAMI_ALLOCATED: text},
    )
    if done:
        pod.status.conditions = [wire.Condition(type="Initialized", status="True")]
    cluster = cluster_with(pod, last, lost)
    assert used(cluster) == charged_by_twin(pod, last, lost)
    problem = cluster.find_claim_problem(cluster.pods["default/p"])
    assert not problem or problem.field == f"metadata.annotations[{names.HAMI_ALLOCATED}]"


@pytest.mark.parametrize(
    ("asked", "claim", "held"),
    [
        pytest.param(
            {}, "node-GPU-0,NVIDIA,15360,100:;", {}, id="a pod that asks no device holds none"
        ),
        pytest.param({}, "x", {}, id="nor does one whose claim nobody can read"),
        pytest.param(
            {"gpu": 1, "gpumem": 500},
            "node-GPU-1,NVIDIA,15360,100:node-GPU-0,NVIDIA,15360,100:;",
            {"node-GPU-1": (0, 500, 1)},
            id="the first card, and no more on it than is asked",
        ),
        pytest.param(
            {"gpu": 1, "gpumem_percent": 50},
            "node-GPU-1,NVIDIA,24576,0:;",
            {"node-GPU-1": (0, 12288, 1)},
            id="percent of the card's own memory",
        ),
        pytest.param(
            {"gpu": 2, "gpumem": 500, "gpucores": 10},
            "node-GPU-2,NVIDIA,400,5:node-GPU-2,NVIDIA,400,5:;node-GPU-1,NVIDIA,9,9:;",
            {"node-GPU-2": (5, 400, 1), "node-GPU-0": (10, 500, 1)},
            id="a card twice is one card and leaves one open, a slot of no container is none",
        ),
        pytest.param(
            {"gpu": 2, "gpumem": 500, "gpucores": 10},
            "x",
            {"node-GPU-0": (10, 500, 1), "node-GPU-1": (10, 500, 1)},
            id="the first cards when nobody can read which",
        ),
        pytest.param(
            {"gpu": 9, "gpumem_percent": 10},
            "",
            {"node-GPU-0": (0, 1536, 1), "node-GPU-1": (0, 2457, 1), "node-GPU-2": (0, 99, 1)},
            id="all cards when more are asked than there are",
        ),
        pytest.param(
            {"gpu": 1, "gpumem_percent": 150},
            "node-GPU-1,NVIDIA,24576,50:;",
            {"node-GPU-1": (50, 24576, 1)},
            id="a whole card of a request that is refused here and lowered by HAMi",
        ),
        pytest.param(
            {"gpu": 2},
            "node-GPU-0,NVIDIA,15360,100:;",
            {"node-GPU-0": (100, 15360, 1), "node-GPU-1": (100, 24576, 1)},
            id="what is not told is on the first card that is not named",
        ),
        pytest.param(
            {"gpu": 2, "gpumem": 500},
            "elsewhere,NVIDIA,400,0:node-GPU-0,NVIDIA,400,0:;",
            {"node-GPU-0": (0, 400, 1), "node-GPU-1": (0, 500, 1)},
            id="a card that the node does not have tells nothing",
        ),
        pytest.param(
            {"gpu": 2, "gpumem": 500},
            "else,NVIDIA,400,0:where,NVIDIA,400,0:;",
            {"node-GPU-0": (0, 500, 1), "node-GPU-1": (0, 500, 1)},
            id="nor do two of them",
        ),
        pytest.param(
            {"gpu": 9, "gpumem": 500},
            "node-GPU-1,NVIDIA,400,0:;",
            {"node-GPU-0": (0, 500, 1), "node-GPU-1": (0, 400, 1), "node-GPU-2": (0, 500, 1)},
            id="one named and all others when more are asked than there are",
        ),
    ],
)
def test_a_claim_is_cut_to_what_is_asked(
    asked: dict[str, Any], claim: str, held: dict[str, tuple[int, ...]]
) -> None:
    pod = make.pod(name="p", node="node", annotations={names.HAMI_ALLOCATED: claim}, **asked)
    assert used(cluster_with(pod)) == held


@pytest.mark.parametrize(
    ("asked", "claim", "held", "said"),
    [
        pytest.param(
            ({}, {"gpu": 1, "gpumem": 500}, {"gpu": 2, "gpumem": 700}),
            ";node-GPU-0,NVIDIA,500,0:;node-GPU-0,NVIDIA,700,0:node-GPU-2,NVIDIA,700,0:;",
            {"node-GPU-0": (0, 1200, 2), "node-GPU-2": (0, 700, 1)},
            "",
            id="complete: containers share a card, one asks none",
        ),
        pytest.param(
            ({"gpu": 1, "gpumem": 500}, {"gpu": 1, "gpumem": 700}),
            "node-GPU-0,NVIDIA,500,0:;",
            {"node-GPU-0": (0, 500, 1), "node-GPU-1": (0, 700, 1)},
            "names 0 of the 1 cards that container 2 requests",
            id="a card of another container is the last that is taken",
        ),
        pytest.param(
            ({"gpu": 2, "gpumem": 500}, {"gpu": 2, "gpumem": 400}),
            "node-GPU-0,NVIDIA,500,0:node-GPU-1,NVIDIA,500,0:;node-GPU-1,NVIDIA,300,0:;",
            {"node-GPU-0": (0, 500, 1), "node-GPU-1": (0, 800, 2), "node-GPU-2": (0, 400, 1)},
            "names 1 of the 2 cards that container 2 requests",
            id="the first that no container names",
        ),
        pytest.param(
            ({"gpu": 3, "gpumem": 500}, {"gpu": 1, "gpumem": 400}),
            "node-GPU-0,NVIDIA,500,0:node-GPU-1,NVIDIA,500,0:node-GPU-2,NVIDIA,500,0:;;",
            {"node-GPU-0": (0, 900, 2), "node-GPU-1": (0, 500, 1), "node-GPU-2": (0, 500, 1)},
            "names 0 of the 1 cards that container 2 requests",
            id="but one of them where all are named",
        ),
    ],
)
def test_what_containers_do_not_tell_is_charged_and_said(
    asked: tuple[dict[str, Any], ...], claim: str, held: dict[str, tuple[int, ...]], said: str
) -> None:
    containers = [make.container(name=f"c{i}", **one) for i, one in enumerate(asked)]
    notes = {names.HAMI_ALLOCATED: claim}
    pod = make.pod(name="p", node="node", containers=containers, annotations=notes)
    cluster = cluster_with(pod)
    assert used(cluster) == held == charged_by_twin(pod)
    problem = cluster.find_claim_problem(cluster.pods["default/p"])
    if said:
        assert str(problem).startswith(f"metadata.annotations[{names.HAMI_ALLOCATED}]: {said}")
    else:
        assert not problem


@pytest.mark.parametrize("card", ["node-GPU-2", "node-GPU-2[0-1]"])
def test_a_card_in_mig_mode_may_be_all_that_a_container_tells(card: str) -> None:
    """HAMi gives two parts of one card to a container that asks two."""
    claim = f"{card},NVIDIA,100,15:{card},NVIDIA,100,15:;"
    notes = {names.HAMI_ALLOCATED: claim}
    pod = make.pod(name="p", node="node", gpu=2, gpumem=100, annotations=notes)
    carved, shared = cluster_with(pod, "mig"), cluster_with(pod)
    assert used(carved).keys() <= {"node-GPU-2"}
    assert not carved.find_claim_problem(carved.pods["default/p"])
    assert used(shared).keys() > {"node-GPU-0"}
    assert shared.find_claim_problem(shared.pods["default/p"])


def test_of_a_node_that_is_left_out_nobody_misses_cards() -> None:
    notes = {names.HAMI_ALLOCATED: "node-GPU-0,NVIDIA,500,0:;"}
    cluster = cluster_with(make.pod(name="p", node="node", gpu=2, gpumem=500, annotations=notes))
    assert cluster.find_claim_problem(cluster.pods["default/p"])
    cluster.see_node(make.hami_node(cards=3, cpu="a lot"))
    assert not cluster.find_claim_problem(cluster.pods["default/p"])


def test_a_pod_that_says_too_much_is_held_to_what_it_asks_all_the_same() -> None:
    """Else whoever may put pods on nodes could close whole cards with pods that ask a MiB."""
    selector = {f"key-{i}": "" for i in range(20_000)}
    pod = make.pod(name="p", node="node", gpu=1, gpumem=1, node_selector=selector)
    cluster = cluster_with(pod)
    assert cluster.pods["default/p"].template.problem
    assert used(cluster) == {"node-GPU-0": (0, 1, 1)}


def test_slots_that_hami_left_out_are_found_again() -> None:
    """HAMi 2.10.0 writes no slot for a container without cards; the card is held all the same."""
    pod = make.pod(
        name="p",
        node="node",
        containers=[make.container(name="a"), make.container(name="b", gpu=1, gpumem=500)],
        annotations={names.HAMI_ALLOCATED: "node-GPU-1,NVIDIA,500,0:;"},
    )
    assert used(cluster_with(pod)) == {"node-GPU-1": (0, 500, 1)}


def test_slots_that_hami_left_out_are_those_of_containers_that_never_asked() -> None:
    """Not those of init containers that are done: the app would be charged to their card, and its own be free."""
    asks: dict[str, Any] = {"gpu": 1, "gpumem": 500}
    pod = make.pod(
        name="p",
        node="node",
        init_containers=[make.container(name="i", **asks)],
        containers=[make.container(name="a"), make.container(name="b", **asks)],
        annotations={names.HAMI_ALLOCATED: "node-GPU-2,NVIDIA,500,0:;node-GPU-1,NVIDIA,500,0:;"},
    )
    both = {"node-GPU-1": (0, 500, 1), "node-GPU-2": (0, 500, 1)}
    assert used(cluster_with(pod)) == charged_by_twin(pod) == both
    pod.status.conditions = [wire.Condition(type="Initialized", status="True")]
    assert used(cluster_with(pod)) == charged_by_twin(pod) == {"node-GPU-1": (0, 500, 1)}


def test_pods_that_do_not_tell_their_cards_share_the_first_and_leave_the_rest() -> None:
    """However many there are, and though the first card is over-full by then."""
    cluster = cluster_with(make.pod(name="p", node="node", gpu=1))
    for i in range(3):
        cluster.see_pod(make.pod(name=f"p{i}", node="node", gpu=1, gpumem=9000, gpucores=90))
    assert used(cluster) == {"node-GPU-0": (370, 15360 + 27000, 4)}
    cycle = make.cycle(cluster=cluster)
    for figure, amount, card in (("gpumem", 1, "node-GPU-1"), ("gpucores", 0, "node-GPU-2")):
        more: dict[str, Any] = {figure: amount}
        pod = cluster.see_pod(make.pod(name=f"asks-{card}", gpu=1, **more))
        assert pod is not None
        [bind] = cycle.schedule([pod]).binds
        assert {use.uuid for use in list_uses(bind.devices)} <= {"node-GPU-1", "node-GPU-2"}


def test_a_pod_that_we_bound_comes_back_by_watch_as_it_was_charged() -> None:
    """What the kernel charged, what the record holds and what the annotation tells are the same."""
    cluster = cluster_with(make.pod(name="nothing"))
    containers = [
        make.container(name="a", gpu=2, gpumem_percent=33, gpucores=10),
        make.container(name="b"),
        make.container(name="c", gpu=1, gpumem=100),
    ]
    init = [make.container(name="i", gpu=1, gpumem_percent=50)]
    pod = make.pod(name="p", containers=containers, init_containers=init)
    pending = cluster.see_pod(pod)
    assert pending is not None
    [bind] = make.cycle(cluster=cluster).schedule([pending]).binds
    record = cluster.pods[pending.uid]
    before = used(cluster)
    pod.spec.node_name = bind.node
    pod.metadata.annotations = hami.make_bind_annotations(
        bind.node, make.read_slots(bind.devices), 1
    )
    bound = cluster.see_pod(pod)
    assert bound is not None
    assert bound.claim is not record.claim
    assert (bound.claim, bound.asks) == (record.claim, record.asks)
    assert used(cluster) == before == charged_by_twin(pod)
    cluster.drop_pod(pod.metadata.uid)
    assert used(cluster) == {}


def test_a_pending_pod_whose_status_says_that_it_is_initialized_is_charged_its_worst_moment() -> (
    None
):
    """It would be taken back by other figures than it was charged."""
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=1)])
    pod = make.pod(
        name="p",
        containers=[make.container(gpu=1, gpumem=2000)],
        init_containers=[make.container(name="i", gpu=1, gpumem=9000)],
    )
    pod.status.conditions = [wire.Condition(type="Initialized", status="True")]
    pending = cluster.see_pod(pod)
    assert pending is not None
    assert make.cycle(cluster=cluster).schedule([pending]).binds
    checks.verify(cluster)
    cluster.forget(pending.uid)
    assert used(cluster) == {}
