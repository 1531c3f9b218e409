"""Online, offline and other pods on Metax's shared cards, as they come and go, against the slow twin."""

from __future__ import annotations

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.cards import list_uses
from scheduler.state import checks
from tests import make, slices
from tests.oracles import metax as twin
from tests.unit.test_vendor_ascend import find_driver
from tests.unit.test_vendor_parts import CARDS, CLASS, POLICY, SHARE, ask_share

POLICIES = ("best-effort", "fixed-share", "burst-share")
GIB = 16


def make_node(cards: list[twin.Card]) -> wire.Node:
    told = [
        {
            "uuid": f"g{i}",
            "totalDevCount": 16,
            "totalCompute": 100,
            "totalVRam": GIB * 1024,
            "healthy": True,
            "qosPolicy": card.reported,
            "linkZone": 1,
        }
        for i, card in enumerate(cards)
    ]
    node = make.node(name="n1", cpu=640, allocatable={SHARE: 16 * len(cards)})
    node.metadata.annotations = {CARDS: json.dumps(told)}
    return node


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_pod_gets_a_card_that_the_twin_gives_it(seed: int, by_policy: bool) -> None:
    rng = random.Random(seed)
    cards = [twin.Card(GIB * 1024, rng.choice(["", *POLICIES])) for _ in range(rng.randint(1, 3))]
    cluster = make.cluster(nodes=[make_node(cards)])
    policies = rng.sample(POLICIES, 2)
    for i in range(24):
        if rng.random() < 0.3 and any(card.pods for card in cards):
            card = rng.choice([card for card in cards if card.pods])
            gone = card.pods.pop(rng.randrange(len(card.pods)))
            cluster.drop_pod(next(uid for uid in cluster.pods if uid.endswith(gone.name)))
        if rng.random() < 0.2:
            # The plugin has switched a card, or has not yet.
            for card in cards:
                own = {pod.policy for pod in card.pods if pod.kind != "online"}
                card.reported = rng.choice([card.reported, *own])
            cluster.see_node(make_node(cards))
        kind = rng.choice(["", "online", "offline"]) if rng.random() < 0.8 else ""
        pod = twin.Pod(
            f"p{i}-",
            rng.choice([1, 2, 6]) * 1024,
            rng.choice([0, 10, 50, 100]),
            kind,
            rng.choice(policies),
        )
        notes = {POLICY: pod.policy} | ({CLASS: kind} if kind else {})
        if by_policy:
            notes[names.HAMI_NODE_POLICY] = rng.choice(["binpack", "spread"])
        asked = ask_share(pod.name, pod.mib // 1024, pod.cores, **notes)
        record = cluster.see_pod(asked)
        assert record is not None
        binds = make.cycle(cluster=cluster).schedule([record]).binds
        checks.verify(cluster)
        may = [card for card in cards if twin.accepts(card, pod)]
        if not may:
            assert not binds, (pod, cards)
            cluster.drop_pod(record.uid)
            continue
        ((use,),) = (list_uses(one.devices) for one in binds)
        chosen = cards[int(use.uuid.removeprefix("g"))]
        assert any(
            chosen is card for card in (twin.find_quietest(may) if kind == "online" else may)
        )
        assert use.cores == (0 if kind == "online" else pod.cores)
        chosen.pods.append(pod)
        # As the watch shows it; the marks stay those of the pod.
        (grant,) = binds[0].devices
        answer = find_driver("Metax-SGPU").write_answer("n1", grant.slots, 1, grant.of_pod)
        asked.metadata.annotations = {**(asked.metadata.annotations or {}), **answer.annotations}
        asked.spec.node_name = "n1"
        assert cluster.see_pod(asked) is not None
        checks.verify(cluster)
