"""Pods whose devices another pod needs: also where all who have a claim together have to go, on whichever nodes they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.engine.allowance import Unlimited
from scheduler.state import checks
from scheduler.state.claims import recount
from tests import make, slices
from tests.operator import devices
from tests.operator.devices import device, device_slice
from tests.oracles import claim_victims as oracle
from tests.oracles.claim_victims import Held, Running, Small
from tests.unit.claims_seen import take_fingerprint
from tests.unit.test_claims_late_news import World

Json = dict[str, Any]
_NODES = ("n0", "n1", "n2")
_EVERYWHERE = frozenset(_NODES)
# The nodes of a rack.
_RACK = frozenset({"n0", "n1"})
_PRIORITY = 100


class Built(World):
    """An engine with a world, and a pod that needs devices."""

    def __init__(self, small: Small, n: int, *, is_late: bool = False) -> None:
        """``is_late``: pods come after the claims that are reserved for them."""
        super().__init__()
        for name, cpu in small.cpu.items():
            labels = {"rack": "a"} if name in _RACK else {}
            self.engine.handle(events.Seen(make.node(name=name, cpu=str(cpu), labels=labels)), 0.0)
        for pool, nodes in {**{name: frozenset({name}) for name in _NODES}, "rack": _RACK, "all": _EVERYWHERE}.items():  # fmt: skip
            there = [device(name) for name, on in small.devices.items() if on == nodes]
            self.see(objects.ResourceSlice, make_slice(pool, there))
        shown = [self._show_pods, self._show_claims]
        for show in reversed(shown) if is_late else shown:
            show(small)
            self.engine._cluster.claims.flush()
        self.see(objects.ResourceClaim, devices.claim("wanted", devices.request(count=n)))
        self.see(wire.Pod, devices.pod_with("needy", "wanted", priority=_PRIORITY) | cpu_of(1, "wanted", priority=_PRIORITY))  # fmt: skip

    def _show_pods(self, small: Small) -> None:
        for pod in small.pods:
            names = [f"c{i}" for i, one in enumerate(small.claims) if pod.name in one.users]
            body = devices.pod_with(pod.name, *names)
            spec = cpu_of(pod.cpu, *names, nodeName=pod.node, priority=pod.priority)
            self.see(wire.Pod, body | spec)

    def _show_claims(self, small: Small) -> None:
        for i, one in enumerate(small.claims):
            self.see(objects.ResourceClaim, make_claim(small, i, one))

    def find_victims(self) -> tuple[str, frozenset[str]] | None:
        """The node and the victims of the first decision."""
        self.now += 1.0
        outcome = self.engine.decide(self.now, Unlimited())
        evicts = [one for plan in outcome.plans for one in plan.evicts]
        assert len(evicts) <= 1
        assert recount.find_difference(self.engine._cluster.claims) == ""
        for one in evicts:
            return one.node, frozenset(uid.removeprefix("uid-") for uid in one.victims)
        return None


def cpu_of(cpu: int, *claims: str, **spec: Any) -> Json:
    """The spec of a pod with a CPU request and claims."""
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"spec": {"schedulerName": "evenkeel", "containers": [container], "resourceClaims": entries, **spec}}  # fmt: skip


def make_slice(pool: str, there: list[Json]) -> Json:
    """A slice for a node, for the rack, or for all nodes."""
    if pool in _NODES:
        return device_slice(pool, there)
    term = {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}
    where: Json = {"allNodes": True} if pool == "all" else {"nodeSelector": {"nodeSelectorTerms": [term]}}  # fmt: skip
    body = device_slice(pool, there)
    del body["spec"]["nodeName"]
    return body | {"spec": body["spec"] | where}


def find_pool(nodes: frozenset[str]) -> str:
    return "all" if nodes == _EVERYWHERE else "rack" if nodes == _RACK else min(nodes)


def make_claim(small: Small, i: int, one: Held) -> Json:
    results = [
        {
            "request": "gpu",
            "driver": devices.DRIVER,
            "pool": find_pool(small.devices[name]),
            "device": name,
        }
        for name in sorted(one.devices)
    ]
    users = [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in sorted(one.users)]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    return devices.claim(f"c{i}", devices.request(count=len(results))) | {"status": status}


@st.composite
def worlds(draw: st.DrawFn) -> Small:
    """A few nodes with their own devices, devices of a rack and of all nodes, and claims of several pods."""
    wheres = [*(frozenset({name}) for name in _NODES), _RACK, _EVERYWHERE]
    n_devices = draw(st.integers(1, 5))
    found = {f"d{i}": draw(st.sampled_from(wheres)) for i in range(n_devices)}
    n_pods = draw(st.integers(1, 6))
    priorities = draw(st.permutations([*range(10, 10 * n_pods, 10), 200])) if n_pods > 1 else [10]
    pods = tuple(
        Running(
            f"p{i}", draw(st.sampled_from(_NODES)), priorities[i], draw(st.sampled_from([0, 1]))
        )
        for i in range(n_pods)
    )
    claims: list[Held] = []
    free = sorted(found)
    while free and len(claims) < 4:
        taken = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
        reach = frozenset.intersection(*(found[name] for name in taken))
        able = sorted(pod.name for pod in pods if pod.node in reach)
        users = draw(st.lists(st.sampled_from([*able, "nobody"]), max_size=3, unique=True))
        claims.append(Held(frozenset(taken), frozenset(users)))
        free = [name for name in free if name not in taken]
        if draw(st.booleans()):
            break
    return Small(
        {name: draw(st.sampled_from([1, 2, 4])) for name in _NODES}, found, pods, tuple(claims)
    )


def fits_as_it_is(small: Small, n: int) -> bool:
    return any(oracle.fits(small, node, frozenset(), n) for node in small.cpu)


@settings(max_examples=slices.count_examples(300), deadline=None)
@given(worlds(), st.integers(1, 3), st.booleans())
@example(
    Small(
        dict.fromkeys(_NODES, 4),
        {"d0": _EVERYWHERE},
        (Running("p0", "n1", 10), Running("p1", "n2", 20)),
        (Held(frozenset({"d0"}), frozenset({"p0", "p1"})),),
    ),
    1,
    False,
)
@example(
    Small(
        dict.fromkeys(_NODES, 4),
        {"d0": frozenset({"n0"}), "d1": frozenset({"n0"})},
        (Running("p0", "n0", 10), Running("p1", "n0", 30), Running("p2", "n0", 20)),
        (
            Held(frozenset({"d0"}), frozenset({"p0", "p1"})),
            Held(frozenset({"d1"}), frozenset({"p2"})),
        ),
    ),
    1,
    True,
)
def test_the_victims_are_those_of_all_sets(small: Small, n: int, is_late: bool) -> None:
    world = Built(small, n, is_late=is_late)
    world.engine._cluster.claims.flush()
    before = take_fingerprint(world.engine._cluster)
    found = world.find_victims()
    if fits_as_it_is(small, n):
        assert found is None
        return
    assert found == oracle.find_victims(small, _PRIORITY, n)
    checks.verify(world.engine._cluster)
    assert take_fingerprint(world.engine._cluster) == before


def share(*users: str, where: frozenset[str] = frozenset({"n0"}), **priorities: int) -> Small:
    """A device that some pods have together: by name where each is."""
    placed = dict(one.split("@") for one in users)
    pods = tuple(Running(name, node, priorities.get(name, 10 + i)) for i, (name, node) in enumerate(placed.items()))  # fmt: skip
    return Small(dict.fromkeys(_NODES, 4), {"d0": where}, pods, (Held(frozenset({"d0"}), frozenset(placed)),))  # fmt: skip


@pytest.mark.parametrize("is_late", [False, True])
def test_all_who_have_a_claim_go(is_late: bool) -> None:
    world = Built(share("a@n0", "b@n0", "c@n0"), 1, is_late=is_late)
    assert world.find_victims() == ("n0", frozenset("abc"))


def test_nobody_goes_if_one_of_them_has_a_higher_priority() -> None:
    assert Built(share("a@n0", "b@n0", b=_PRIORITY + 1), 1).find_victims() is None


def test_nobody_goes_from_other_nodes_if_one_of_them_has_a_higher_priority() -> None:
    world = Built(share("a@n1", "b@n2", where=_EVERYWHERE, b=_PRIORITY + 1), 1)
    assert world.find_victims() is None


def test_nobody_goes_if_a_pod_has_the_claim_that_is_on_no_node() -> None:
    small = share("a@n0")
    claim = Held(frozenset({"d0"}), frozenset({"a", "nobody"}))
    world = Built(Small(small.cpu, small.devices, small.pods, (claim,)), 1)
    assert world.find_victims() is None


def test_nobody_goes_for_devices_that_the_claim_does_not_want() -> None:
    small = share("a@n1", "b@n2", where=_EVERYWHERE)
    world = Built(small, 1)
    odd = devices.device_class("gpu", "device.driver == 'other'")
    world.see(objects.DeviceClass, odd)
    assert world.find_victims() is None


def test_who_is_kept_by_a_budget_goes_only_if_nobody_else_can() -> None:
    """Of two claims the one is freed whose pods no budget covers, though they are more important."""
    small = Small(
        dict.fromkeys(_NODES, 4),
        {"d0": _EVERYWHERE, "d1": _EVERYWHERE},
        (Running("a", "n1", 10), Running("b", "n2", 11), Running("x", "n1", 20), Running("y", "n2", 21)),
        (Held(frozenset({"d0"}), frozenset("ab")), Held(frozenset({"d1"}), frozenset("xy"))),
    )  # fmt: skip
    assert Built(small, 1).find_victims() == ("n0", frozenset("ab"))
    world = Built(small, 1)
    body = devices.pod_with("b", "c0") | cpu_of(1, "c0", nodeName="n2", priority=11)
    world.see(wire.Pod, body | {"metadata": body["metadata"] | {"labels": {"app": "kept"}}})
    world.engine.handle(
        events.Seen(make.budget("b", wire.LabelSelector(match_labels={"app": "kept"}))), 0.0
    )
    assert world.find_victims() == ("n0", frozenset("xy"))


def test_the_pod_waits_until_all_of_them_are_gone_and_gets_the_devices_when_the_claim_is_freed() -> (
    None
):
    world = Built(share("a@n1", "b@n2", where=_EVERYWHERE), 1)
    assert world.find_victims() == ("n0", frozenset("ab"))
    for name in "ab":
        world.now += 5.0
        assert world.find_victims() is None
        world.gone("Pod", f"uid-{name}")
    world.see(objects.ResourceClaim, devices.claim("c0"))
    assert world.decide() == {"uid-needy"}


def show_group(world: World, topology: str = "") -> None:
    """A group of two whose pods share a claim, of a high priority."""
    world.engine.handle(events.Seen(make.pod_group(minimum=2, topology=topology, priority=_PRIORITY)), 0.0)  # fmt: skip
    world.gone("Pod", "uid-needy")
    for name in ("m0", "m1"):
        pod = make.member(make.pod(name=name, namespace="default", cpu="1", priority=_PRIORITY))
        pod.metadata.uid = f"uid-{name}"
        pod.spec.resource_claims = [wire.PodClaim("entry", "wanted")]
        world.engine.handle(events.Seen(pod), 0.0)


@pytest.mark.parametrize("topology", ["", "rack"])
def test_pods_on_other_nodes_go_for_a_group(topology: str) -> None:
    """Also where the group has to be in a domain in which none of them is."""
    world = Built(share("a@n2", "b@n2", where=_EVERYWHERE), 1)
    show_group(world, topology)
    node, victims = world.find_victims() or ("", frozenset())
    assert victims == frozenset("ab")
    assert not topology or node in _RACK


def test_nobody_goes_for_a_group_if_one_of_them_has_a_higher_priority() -> None:
    world = Built(share("a@n2", "b@n1", where=_EVERYWHERE, b=_PRIORITY + 1), 1)
    show_group(world, "rack")
    assert world.find_victims() is None


def test_a_gang_goes_as_a_whole_for_the_devices_that_its_pods_have_together() -> None:
    """No pod of it goes alone, and the one that waits has no place but on a node of the gang."""
    world = Built(share("a@n0", "b@n1", where=_EVERYWHERE), 1)
    world.engine.handle(events.Seen(make.pod_group("low", minimum=2)), 0.0)
    for name, node in (("a", "n0"), ("b", "n1")):
        body = devices.pod_with(name, "c0") | cpu_of(1, "c0", nodeName=node, priority=1)
        body["spec"]["schedulingGroup"] = {"podGroupName": "low"}
        world.see(wire.Pod, body)
    node, victims = world.find_victims() or ("", frozenset())
    assert victims == frozenset("ab")


def test_a_pod_does_not_stay_beside_a_group_that_gets_its_device() -> None:
    """The group has the device by a claim that its pods share."""
    world = Built(share("a@n0"), 1)
    show_group(world)
    assert world.find_victims() == ("n0", frozenset("a"))


@pytest.mark.parametrize("where", [_EVERYWHERE, frozenset({"n0"})])
def test_two_pods_do_not_count_on_the_same_victims(where: frozenset[str]) -> None:
    nodes = {"a": "n1", "b": "n2", "x": "n1", "y": "n2"} if len(where) > 1 else dict.fromkeys("abxy", "n0")  # fmt: skip
    priorities = {"a": 10, "b": 11, "x": 20, "y": 21}
    pods = tuple(Running(name, nodes[name], one) for name, one in priorities.items())
    claims = (
        Held(frozenset({"d0"}), frozenset("ab")),
        Held(frozenset({"d1"}), frozenset("xy")),
    )
    world = Built(Small(dict.fromkeys(_NODES, 8), {"d0": where, "d1": where}, pods, claims), 1)
    assert world.find_victims() == ("n0", frozenset("ab"))
    world.see(objects.ResourceClaim, devices.claim("second"))
    second = devices.pod_with("second", "second") | cpu_of(1, "second", priority=_PRIORITY)
    world.see(wire.Pod, second)
    assert (world.find_victims() or ("", frozenset()))[1] == frozenset("xy")
    assert world.find_victims() is None
    checks.verify(world.engine._cluster)
