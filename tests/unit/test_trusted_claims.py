"""What a pod that runs holds is what its claim says, also when its request has come to mean less."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import hami, names, steering, wire
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.api.pods.gpus import MEMORY_MAX_MIB, ContainerAsk, ContainerKind, GpuAsk
from scheduler.config import Config, parse_config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.errors import BadInput
from scheduler.state.held_asks import raise_asks
from scheduler.state.told_cards import limit_claim
from tests import make

_MAP = "kube-system/hami-scheduler-device"
_ASKED = st.builds(
    ContainerAsk,
    kind=st.just(ContainerKind.APP),
    cards=st.integers(1, 3),
    mem_mib=st.integers(1, 100),
    mem_percent=st.just(0),
    cores=st.integers(0, 100),
    core_percent=st.just(0),
)
_USES = st.lists(
    st.builds(
        CardUse,
        uuid=st.sampled_from("abcde"),
        mem_mib=st.integers(0, 300),
        cores=st.integers(0, 200),
        place=st.none(),
    ),
    unique_by=lambda use: use.uuid,
    max_size=4,
).map(tuple)


def _write_map(**changes: Any) -> steering.ConfigMap:
    nvidia = {
        "resourceCountName": names.GPU,
        "resourceMemoryName": names.GPU_MEMORY,
        "resourceMemoryPercentageName": names.GPU_MEMORY_PERCENT,
        "resourceCoreName": names.GPU_CORES,
        "defaultGPUNum": 1,
        **changes,
    }
    meta = wire.Meta(name="hami-scheduler-device", namespace="kube-system", uid="m")
    return steering.ConfigMap(meta, {"device-config.yaml": yaml.safe_dump({"nvidia": nvidia})})


def _start(config: Config, settings: steering.ConfigMap, *pods: wire.Pod) -> Engine:
    """An engine that begins on a cluster of one T4 with these pods."""
    engine = Engine(config)
    engine.handle(events.Seen(settings), 0.0)
    seen: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("Node", (make.hami_node(name="n", cards=1, cpu="64"),)),
        ("Pod", pods),
    )
    for kind, objects in seen:
        selected = names.SCHEDULER if kind == "Pod" else ""
        engine.handle(events.ListBegins(kind, selected), 0.0)
        for one in objects:
            engine.handle(events.Seen(one), 0.0)
        engine.handle(events.ListEnds(kind, selected), 0.0)
    engine.handle(events.ListBegins("Pod"), 0.0)
    engine.handle(events.ListEnds("Pod"), 0.0)
    return engine


def _make_holder(mib: int, holds: int) -> wire.Pod:
    claim = {
        names.HAMI_NODE: "n",
        names.HAMI_ALLOCATED: hami.encode_devices([[CardUse("n-GPU-0", holds, 0)]]),
    }
    return make.pod(name="old", node="n", gpu=1, gpumem=mib, annotations=claim)


@pytest.mark.parametrize(("trust", "bound"), [(True, 0), (False, 1)])
def test_a_pod_placed_by_a_larger_factor_keeps_its_memory_over_a_restart(
    trust: bool, bound: int
) -> None:
    """It requested 8 units of 1000 MiB. With a factor of 1, 8 MiB would be left of that, and the card would be given again."""
    config = Config(hami_config_map=_MAP, trust_claims=trust)
    new = make.pod(name="new", gpu=1, gpumem=9000)
    engine = _start(config, _write_map(memoryFactor=1), _make_holder(8, 8000), new)
    assert len(engine.decide(1.0, Unlimited()).binds) == bound


def test_trust_is_on_unless_the_file_says_otherwise() -> None:
    assert Config().trust_claims
    assert not parse_config({"trustClaims": False}).trust_claims
    with pytest.raises(BadInput, match="trustClaims: 'no' is neither true nor false"):
        parse_config({"trustClaims": "no"})


@given(st.lists(st.tuples(_ASKED, _USES), min_size=1, max_size=3))
def test_raised_asks_hold_all_of_a_claim_and_no_more_cards(
    slots: list[tuple[ContainerAsk, tuple[CardUse, ...]]],
) -> None:
    asks = tuple(ask for ask, _ in slots)
    claim = tuple(uses for _, uses in slots)
    [raised] = raise_asks((GpuAsk(names.GPU, asks),), [(names.GPU, claim)])
    for uses, ask, after in zip(claim, asks, raised.containers, strict=True):
        assert after.cards == ask.cards
        assert after.mem_mib == max([ask.mem_mib, *(use.mem_mib for use in uses)])
        assert after.cores == max([ask.cores, *(use.cores for use in uses)])
    limited = limit_claim(claim, raised.containers, initialized=False)
    cut = tuple(uses[: ask.cards] for uses, ask in zip(claim, asks, strict=True))
    assert limited == (cut if any(cut) else ())


def test_shares_of_a_card_stay_and_figures_have_a_bound() -> None:
    percent = ContainerAsk(ContainerKind.APP, 1, 0, 50, 0, 30)
    figure = ContainerAsk(ContainerKind.APP, 1, 10, 0, 5)
    none = ContainerAsk(ContainerKind.APP)
    huge = (CardUse("a", 1 << 60, 1 << 60),)
    [raised] = raise_asks(
        (GpuAsk(names.GPU, (percent, figure, none)),), [(names.GPU, (huge, huge, huge))]
    )
    # No card has so much.
    assert raised.containers == (percent, figure, none)
    most = (CardUse("a", MEMORY_MAX_MIB - 1, 1 << 60),)
    [raised] = raise_asks((GpuAsk(names.GPU, (figure,)),), [(names.GPU, (most,))])
    bounded = figure._replace(mem_mib=MEMORY_MAX_MIB - 1, cores=MEMORY_MAX_MIB)
    assert raised.containers == (bounded,)


def test_other_families_stay() -> None:
    ask = GpuAsk("huawei.com/Ascend910B", (ContainerAsk(ContainerKind.APP, 1, 10),))
    claim = ((CardUse("a", 100, 0),),)
    assert raise_asks((ask,), [(names.GPU, claim)]) == (ask,)
