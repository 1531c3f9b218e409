"""The note of a pod that was bound: kube-scheduler's words, its cards, and by whose wish it is where it is."""

from typing import Any

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.config import Config, parse_config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.telling import placements
from scheduler.telling.sayings import NOTE_MAX
from tests import make

POLICY = {"metadata": {"name": "team-a", "generation": 1}, "spec": {"scoring": {"mode": "fgd"}}}


def note(pod: wire.Pod, *nodes: wire.Node, policy: Any = None, config: Config | None = None) -> str:
    engine = Engine(config or Config())
    for node in nodes:
        engine.handle(events.Seen(node), 0.0)
    if policy:
        engine.handle(events.Seen(make.policy(policy)), 0.0)
    engine.handle(events.Seen(pod), 0.0)
    (bind,) = engine.decide(0.0, Unlimited()).binds
    record = engine._cluster.pods[bind.uid]
    how = placements.say_how(record, engine._policies.resolve(record))
    return placements.write_note(engine._cluster, record, how)


def test_cards_are_told_by_index_and_uuid_with_what_is_held_of_them() -> None:
    pod = make.pod(gpu=2, gpumem=7500, gpucores=30)
    assert note(pod, make.hami_node(name="a", cards=2)) == (
        "Successfully assigned default/pod to a with cards 0 (a-GPU-0, 7500 MiB, 30 % of its cores), "
        "1 (a-GPU-1, 7500 MiB, 30 % of its cores); mode keel, by profile evenkeel"
    )


def test_one_card_without_a_share_of_cores_and_a_policy() -> None:
    pod = make.pod(gpu=1, gpumem=100)
    assert note(pod, make.hami_node(name="a"), policy=POLICY) == (
        "Successfully assigned default/pod to a with card 0 (a-GPU-0, 100 MiB); mode fgd, by policy team-a"
    )


def test_the_pods_own_annotations_are_told_before_the_policy_that_governs_it() -> None:
    own = {names.HAMI_NODE_POLICY: "spread", names.HAMI_GPU_POLICY: "numa,spread,numa"}
    pod = make.pod(gpu=1, gpumem=100, annotations=own)
    text = note(pod, make.hami_node(name="a"), policy=POLICY)
    assert text.endswith(
        "; node policy spread, GPU policy numa,spread, by the pod's annotations and policy team-a"
    )


def test_whole_gpus_are_counted() -> None:
    assert note(make.pod(gpu=2), make.node(name="a", gpus=4)) == (
        "Successfully assigned default/pod to a with 2 nvidia.com/gpu; mode keel, by profile evenkeel"
    )


def test_of_a_pod_without_gpus_only_a_wish_is_told() -> None:
    node = make.node(name="a")
    bare = "Successfully assigned default/pod to a"
    assert note(make.pod(), node) == bare
    own = {names.MODE: "most-allocated"}
    assert note(make.pod(annotations=own), node) == f"{bare}; mode most-allocated, by the pod's annotations"  # fmt: skip
    own = {names.OBJECTIVE: "pack"}
    assert note(make.pod(annotations=own), node) == f"{bare}; mode keel, objective pack, by the pod's annotations"  # fmt: skip
    assert note(make.pod(), node, policy=POLICY) == f"{bare}; mode fgd, by policy team-a"
    packing = parse_config({"placement": {"scoring": {"mode": "most-allocated"}}})
    assert note(make.pod(), node, config=packing) == f"{bare}; mode most-allocated, by profile evenkeel"  # fmt: skip


def test_of_more_cards_than_a_note_holds_the_first_are_told_whole_and_the_rest_counted() -> None:
    """As many as a machine may have, with UUIDs as NVIDIA makes them."""
    uuids = [f"GPU-{i:08d}-483b-b48f-d7e5-75fb19a52b76" for i in range(40)]
    cards = [make.card(uuid=uuid, index=i) for i, uuid in enumerate(uuids)]
    text = note(make.pod(gpu=40), make.hami_node(name="a", cards=cards))
    assert len(text.encode()) <= NOTE_MAX
    n = text.count("MiB, 100 % of its cores)")
    assert 8 <= n < 40
    assert text.endswith(f" and {40 - n} more; mode keel, by profile evenkeel")
