"""Whatever happens to classes, plugins, claims and pods with extended resources, the columns are those of a fresh build."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.claims import extended, objects
from scheduler.state.pods import Life, PodRecord
from tests import make, slices
from tests.unit import test_claims_state as plain

Json = dict[str, Any]
pytestmark = pytest.mark.many

_NAMES = ("example.com/gpu", "example.com/nic", "deviceclass.resource.kubernetes.io/any")
_EVENTS = (
    *plain._EVENTS,
    *("pod_of_class_comes", "slice_comes", "scheduler_decides", "class_comes") * 3,
    "class_goes", "plugin_comes", "claim_is_made", "claim_is_made", "status_names_a_claim",
)  # fmt: skip


class World(plain.World):
    """The same, with extended resources of classes."""

    def slice_comes(self, rng: random.Random) -> None:
        """Most nodes have a pool of their own, which is whole."""
        if rng.random() < 0.3:
            super().slice_comes(rng)
            return
        node = rng.choice(plain._NODES)
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        found = [plain.make_device(rng, i, {}) for i in range(rng.randrange(2, 5))]
        for one in found:
            one.pop("consumesCounters", None)
        spec = {"driver": "own.example", "nodeName": node, "pool": pool, "devices": found}
        body = {"kind": "ResourceSlice", "metadata": {"name": f"own-{node}"}, "spec": spec}
        self._see("slice", msgspec.convert(body, objects.ResourceSlice))

    def pod_of_class_comes(self, rng: random.Random) -> None:
        self.n += 1

        def container(name: str) -> Json:
            amounts = {one: rng.randrange(1, 3) for one in rng.sample(_NAMES, rng.choice([0, 1, 1, 1, 2]))}  # fmt: skip
            return make.container(name=name, cpu="1", requests=amounts)

        init = [container(f"i{i}") for i in range(rng.choice([0, 0, 1]))]
        app = [container(f"c{i}") for i in range(rng.choice([1, 1, 2]))]
        pod = make.pod(name=f"pod-{self.n}", init_containers=init, containers=app)
        if rng.random() < 0.2:
            pod.spec.resource_claims = make.claims(f"claim-{rng.randrange(4)}")
        self.uids.append(pod.metadata.uid)
        self._see("pod", pod)

    def status_names_a_claim(self, rng: random.Random) -> None:
        pod = self._pick("pod", rng)
        if pod is not None and rng.random() < 0.2:
            pod.status.extended_resource_claim_status = wire.PodExtendedClaim("gone")
            self._see("pod", pod)

    def claim_is_freed(self, rng: random.Random) -> None:
        state = rng.getstate()
        claim = self._pick("claim", rng)
        owners = (claim.metadata.owner_references or ()) if claim is not None else ()
        # What was decided for a pod counts as long as the pod is there.
        if not any(one.uid in self.cluster.pods for one in owners):
            rng.setstate(state)
            super().claim_is_freed(rng)

    def class_comes(self, rng: random.Random) -> None:
        self.n += 1
        name = rng.choice(["any", "any", "b", "c"])
        meta = plain.make_meta(name)
        meta.creation_timestamp = f"2026-01-{rng.randrange(10, 12)}T00:00:00Z"
        selectors = []
        if rng.random() < 0.2:
            text = rng.choice(["device.attributes['dra.example'].kind == 'a'", "device.", "false"])
            selectors = [objects.DeviceSelector(objects.CelSelector(text))]
        of_name = rng.choice([None, *_NAMES[:2], *_NAMES[:1] * 3])
        spec = objects.ClassSpec(selectors, extended_resource_name=of_name)
        self._see("class", objects.DeviceClass(meta, spec))

    def class_goes(self, rng: random.Random) -> None:
        self._gone("class", rng)

    def plugin_comes(self, rng: random.Random) -> None:
        """A node's device plugin offers some of a resource, or nothing any more."""
        amounts = {one: rng.randrange(3) for one in rng.sample(_NAMES[:2], rng.randrange(3))}
        labels = {"zone": rng.choice("ab")}
        self._see("node", make.node(name=rng.choice(plain._NODES), labels=labels, allocatable=amounts))  # fmt: skip

    def claim_is_made(self, rng: random.Random) -> None:
        """The claim of a pod is made by its bind, or was made by an earlier one that is not known."""
        assumed = [pod for pod in self.cluster.pods.values() if pod.life == Life.ASSUMED]
        found = self._pick("pod", rng)
        if assumed and rng.random() < 0.7:
            for one in (pod := rng.choice(assumed)).allotted:
                if one.made:
                    self._make_claim(pod, one.made)
        elif found is not None and not found.spec.node_name:
            known = self.cluster.pods.get(found.metadata.uid)
            if known is not None and known.life == Life.PENDING:
                exactly = objects.ExactRequest(device_class_name="any", allocation_mode="ExactCount", count=1)  # fmt: skip
                drawn = extended.Drawn((objects.DeviceRequest("r", exactly),), ("",), ())
                self._make_claim(known, extended.write_claim(drawn))

    def _make_claim(self, pod: PodRecord, made: bytes) -> None:
        name = f"of-{pod.name}"
        if ("claim", name) in self.objects:
            return
        owner = {"kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        self.n += 1
        body = {
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"claim-uid-{self.n}",
                "annotations": {names.EXTENDED_CLAIM: "true"},
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": msgspec.json.decode(made)["requests"]}},
        }
        self._see("claim", msgspec.convert(body, objects.ResourceClaim))

    def _write_decision(self, pod: PodRecord) -> None:
        super()._write_decision(pod)
        for one in pod.allotted:
            if not one.made:
                continue
            self._make_claim(pod, one.made)
            claim = self.objects["claim", f"of-{pod.name}"]
            if claim.status.allocation is None:
                given = msgspec.json.decode(one.allocation, type=objects.Allocation)
                claim.status.allocation = given
            consumer = objects.Consumer(resource="pods", name=pod.name, uid=pod.uid)
            claim.status.reserved_for = [consumer]
            self._see("claim", claim)


@given(
    st.lists(st.tuples(st.sampled_from(_EVENTS), st.integers(0, 2**20)), min_size=10, max_size=60)
)
@settings(max_examples=slices.count_examples(200), deadline=None)
def test_any_events_leave_the_columns_of_a_fresh_build(happened: list[tuple[str, int]]) -> None:
    plain.play(happened, World())


@pytest.mark.parametrize("seed", slices.pick_part(range(10)))
def test_long_histories_leave_the_columns_of_a_fresh_build(seed: int) -> None:
    rng = random.Random(seed)
    plain.play([(rng.choice(_EVENTS), rng.randrange(2**20)) for _ in range(300)], World())
