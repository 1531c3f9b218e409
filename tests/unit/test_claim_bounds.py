"""No more is written of a pod's cards than is read back, and no run of pods makes a call without an end."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.api import hami, limits, names
from scheduler.api.limits import PodLimits
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle import schedule
from scheduler.kernels import place
from scheduler.schema import columns as c
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.model.server import Server
from tests.model.streams import Streams
from tests.oracles import allocation

Json = dict[str, Any]
GPU_LIMITS = f"spec.containers[].resources.limits[{names.GPU}]"


def inits(n: int, *, gpu: int) -> list[Json]:
    asked: Json = {"gpu": gpu, "gpumem": 1, "gpucores": 0} if gpu else {}
    return [make.container(name=f"i{j}", **asked) for j in range(n)]


def main(gpu: int, **figures: Any) -> list[Json]:
    return [make.container(gpu=gpu, **({"gpumem": 1, "gpucores": 0} | figures))]


def problem_of(cluster: Cluster, pod: Any) -> str:
    """What the only hold of a pod says; empty when it is bound."""
    record = cluster.see_pod(pod)
    assert record is not None
    outcome = make.cycle(cluster=cluster).schedule([record])
    return "".join(str(hold.problem) for hold in outcome.holds)


def test_a_pod_of_more_cards_than_are_read_back_is_held_and_no_card_is_given_twice() -> None:
    """Once bound, its claim was unreadable: it was charged to other cards, and its own went to the next pod."""
    server, cluster = Server(), Cluster()
    streams, cycle = Streams(server, cluster), make.cycle(cluster=cluster)
    server.create("nodes", make.raw(make.hami_node(name="n", cards=4, cpu="64")))

    def decided(**pod: Any) -> list[str]:
        server.create("pods", make.raw(make.pod(**pod)))
        streams.deliver_all()
        waiting = [one for one in cluster.pods.values() if make.is_waiting(one)]
        outcome = cycle.schedule(waiting)
        for bind in outcome.binds:
            assert streams.bind(bind.uid, bind.node, make.read_slots(bind.devices))
        streams.deliver_all()
        return [str(hold.problem) for hold in outcome.holds]

    (told,) = decided(
        name="big",
        init_containers=inits(500, gpu=2),
        containers=main(2, gpumem=12000, gpucores=50),
        annotations={names.USE_UUID: "n-GPU-2,n-GPU-3"},
    )
    assert told == f"{GPU_LIMITS}: requests more than 1000 in all containers, the maximum"
    decided(name="next", containers=main(1, gpumem=12000, gpucores=60))
    assert not allocation.violations(server.of_kind("nodes"), server.of_kind("pods"))
    assert not checks.list_overcommitted(cluster)
    checks.verify(cluster)


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        ({"init_containers": inits(499, gpu=2), "containers": main(2)}, ""),
        ({"init_containers": inits(500, gpu=2), "containers": main(1)}, GPU_LIMITS),
        ({"init_containers": inits(999, gpu=1), "containers": main(1)}, ""),
        ({"containers": main(1001)}, GPU_LIMITS),
    ],
)
def test_a_thousand_cards_may_be_asked_and_no_more(pod: Json, problem: str) -> None:
    cluster = make.cluster(nodes=[make.hami_node(cards=2)])
    assert problem_of(cluster, make.pod(**pod)).partition(": ")[0] == problem


@pytest.mark.parametrize(("gpu", "problem"), [(None, ""), (1, "spec.containers")])
def test_whatever_the_configuration_allows_no_claim_is_of_more_containers_than_are_read(
    gpu: int | None, problem: str
) -> None:
    cluster = Cluster(limits=PodLimits(containers=5000))
    cluster.see_node(make.hami_node(cards=2))
    first = make.container(gpu=gpu)
    more = [make.container(name=f"c{i}") for i in range(limits.CLAIM_CONTAINERS)]
    told = problem_of(cluster, make.pod(containers=[first, *more]))
    assert told.partition(": ")[0] == problem


def test_a_pod_with_a_node_is_charged_however_many_cards_it_asks() -> None:
    """It was not ours to hold; nobody can tell which cards it has, and they are not whole ones."""
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=4)])
    init, own = inits(500, gpu=2), main(2, gpumem=700)
    pod = make.pod(name="runs", node="n", init_containers=init, containers=own)
    record = cluster.see_pod(pod)
    assert record is not None
    assert record.template.problem is not None
    assert sorted(cluster.cards.columns.used[c.MIB, :4].tolist()) == [0, 0, 700, 700]
    checks.verify(cluster)


@settings(
    max_examples=slices.count_examples(40),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.tuples(st.integers(0, 260), st.sampled_from([0, 1, 2, 4])), max_size=4),
    st.integers(0, 4),
)
def test_of_every_pod_that_is_bound_the_claim_reads_as_it_was_decided(
    runs: list[tuple[int, int]], gpu: int
) -> None:
    init = [one for n, cards in runs for one in inits(n, gpu=cards)]
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=4)])
    own = main(gpu) if gpu else [make.container()]
    record = cluster.see_pod(make.pod(init_containers=init, containers=own))
    assert record is not None
    outcome = make.cycle(cluster=cluster).schedule([record])
    for bind in outcome.binds:
        slots = make.read_slots(bind.devices)
        assert hami.decode_devices(hami.encode_devices(slots)) == slots
    asked = gpu + sum(n * cards for n, cards in runs)
    assert bool(outcome.binds) == (asked <= 1000 and len(init) < 1000)


@pytest.mark.parametrize("mode", [Mode.KEEL, Mode.FIRST_FIT, Mode.RANDOM])
def test_a_run_comes_out_the_same_in_however_many_calls_it_is_placed(
    monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    rng = random.Random(3)
    sizes = [(rng.randrange(3, 12), rng.randrange(1, 4)) for _ in range(6)]

    def placed() -> tuple[Any, Any, int]:
        cluster = make.cluster(nodes=[make.hami_node(name=f"n{i}", cards=4) for i in range(6)])
        cycle = make.cycle(cluster=cluster, config=Config(placement=Placement(mode=mode)))
        calls: list[int] = []
        kernel = place.place_run

        def told(*given: Any) -> int:
            calls.append(given[-1].card.size)
            return kernel(*given)

        pods = [
            cluster.see_pod(
                make.pod(
                    name=f"p{r}-{i}",
                    init_containers=inits(2, gpu=cards),
                    containers=main(cards, gpumem=1500 + r),
                )
            )
            for r, (n, cards) in enumerate(sizes)
            for i in range(n)
        ]
        with monkeypatch.context() as patch:
            patch.setattr(place, "place_run", told)
            outcome = cycle.schedule([pod for pod in pods if pod is not None])
        checks.verify(cluster)
        return outcome, checks.take_fingerprint(cluster), max(calls)

    together = placed()
    assert together[2] > 20 or mode == Mode.RANDOM
    monkeypatch.setattr(schedule, "_PICKS_MAX", 20)
    apart = placed()
    assert apart[:2] == together[:2]
    assert apart[2] <= 20


def test_what_a_run_of_dear_pods_needed_is_no_room_for_a_long_run_of_others() -> None:
    """Pods of many picks, then many pods: room for the product of both would be hundreds of megabytes."""
    cluster = make.cluster(nodes=[make.hami_node(cards=4, cpu="64", pods=10_000)])
    dear = make.pod(name="dear", init_containers=inits(249, gpu=4), containers=main(4))
    plain = [make.pod(name=f"p{i}", cpu="1m") for i in range(2000)]
    cycle = make.cycle(cluster=cluster)
    for pods in ([dear], plain, [dear]):
        records = [cluster.see_pod(pod) for pod in pods]
        cycle.schedule([one for one in records if one is not None])
    assert cycle._rooms._of_picks.size <= 3 * 2000


def test_a_pod_of_very_many_cards_costs_its_namespace_something_each_time() -> None:
    cluster = make.cluster(nodes=[make.hami_node(cards=4)])
    cycle = make.cycle(cluster=cluster, config=Config())
    dear = make.pod(name="dear", init_containers=inits(240, gpu=4), containers=main(4))
    costs = []
    for pod in (dear, make.pod(name="usual", gpu=1)):
        record = cluster.see_pod(pod)
        assert record is not None
        cycle.get_shape(record)
        costs.append(cycle.estimate_cost(record))
    assert costs == [15, 0]
