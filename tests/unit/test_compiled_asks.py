"""What shapes have in common is made once, and is what each of them would have made for itself."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from scheduler.api import names
from scheduler.api.placement import Mode, Placement
from scheduler.plugins.compiled_asks import AskCompiler, compile_preferences
from scheduler.plugins.contract import Asked
from scheduler.schema.handles import Handle
from scheduler.state.cluster import Cluster
from tests import make

PLACEMENTS = (
    Placement(),
    Placement(mode=Mode.LEAST_ALLOCATED),
    Placement(mode=Mode.KUBE_SCHEDULER),
    Placement(mode=Mode.GPU_CLUSTERING),
    Placement(gpu_policy="spread"),
    Placement(node_policy="binpack"),
)
WORDS: tuple[dict[str, str], ...] = (
    {},
    {names.USE_TYPE: "A100"},
    {names.NOUSE_TYPE: "A100"},
    {names.NUMA_BIND: "true"},
    {names.USE_UUID: "GPU-0"},
    {names.NOUSE_UUID: "GPU-0"},
    {names.VGPU_MODE: "mps"},
)


def test_preferences_that_are_shared_are_those_of_the_shape() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=2)])
    compiler = AskCompiler(cluster)
    for turn in range(2):
        for placement, words, gpu in product(PLACEMENTS, WORDS, (0, 1, 2)):
            asked = _ask(cluster, placement, words, gpu)
            ask = compiler.compile_ask(asked)
            assert _values(ask.prefers) == _values(compile_preferences(asked, cluster))
        # A card of a new model, so that all flags are longer.
        cards = [make.card(uuid=f"new-{turn}", index=0, model=f"H{turn}00")]
        cluster.see_node(make.hami_node(name=f"other-{turn}", cards=cards))


def test_pods_that_differ_in_amounts_share_what_they_prefer() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="n", cards=2)])
    compiler, placement = AskCompiler(cluster), Placement()
    one, two = (compiler.compile_ask(_ask(cluster, placement, {}, n)) for n in (1, 2))
    assert one.prefers is two.prefers
    other = compiler.compile_ask(_ask(cluster, placement, {names.NUMA_BIND: "true"}, 1))
    assert other.prefers is not one.prefers


def _ask(cluster: Cluster, placement: Placement, words: dict[str, str], gpu: int) -> Asked:
    figures: dict[str, Any] = {"gpu": gpu} if gpu else {}
    record = cluster.see_pod(make.pod(name="p", cpu=f"{1 + gpu}", annotations=words, **figures))
    assert record is not None
    return Asked(record.template, placement)


def _values(handle: Handle) -> list[object]:
    return [
        (one.tolist(), one.shape)
        if isinstance(one, np.ndarray)
        else _values(one)
        if isinstance(one, Handle)
        else one
        for one in handle.list_values()
    ]
