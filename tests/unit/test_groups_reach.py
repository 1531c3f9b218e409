"""Groups whose pods share a claim on a device that the nodes of one domain can use: they go where all of them fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.engine.engine import Engine
from tests import make, slices
from tests.operator import devices
from tests.operator.devices import device, device_slice
from tests.oracles import shared_domains as oracle
from tests.oracles.shared_domains import Member, Spot
from tests.unit.test_claims_joined import SharedWorld

Json = dict[str, Any]
_DOMAINS, _SIZE = 25, 8
_CHANNELS = "channel.example.com"


def make_channel(domain: int, n: int = 1) -> Json:
    """Devices that all nodes of a domain can use."""
    body = device_slice(f"domain-{domain}", [device(f"channel-{i}") for i in range(n)], driver=_CHANNELS)  # fmt: skip
    del body["spec"]["nodeName"]
    term = {"matchExpressions": [{"key": "domain", "operator": "In", "values": [str(domain)]}]}
    return body | {"spec": body["spec"] | {"nodeSelector": {"nodeSelectorTerms": [term]}}}


class DomainWorld(SharedWorld):
    """Domains of nodes with four devices each, and a device of each domain; a claim for one of these."""

    def __init__(self, *, mode: Mode = Mode.KEEL, domains: int = _DOMAINS, size: int = _SIZE) -> None:  # fmt: skip
        super().__init__()
        self.engine = Engine(Config(placement=Placement(mode=mode)))
        for name, expression in (
            ("gpu", f"device.driver == '{devices.DRIVER}'"),
            ("channel", f"device.driver == '{_CHANNELS}'"),
        ):
            self.see(objects.DeviceClass, devices.device_class(name, expression))
        for domain in range(domains):
            self.see(objects.ResourceSlice, make_channel(domain))
            for i in range(size):
                name = f"n{domain:02}-{i}"
                labels = {"domain": str(domain)}
                self.engine.handle(events.Seen(make.node(name=name, cpu="8", labels=labels)), 0.0)
                gpus = [device(f"gpu-{k}") for k in range(4)]
                self.see(objects.ResourceSlice, device_slice(name, gpus))
        self.see(objects.ResourceClaim, devices.claim("domain", devices.request(of_class="channel")))  # fmt: skip

    def fill(self, node: str, cpu: str = "8") -> None:
        self.engine.handle(events.Seen(make.pod(name=f"on-{node}", node=node, cpu=cpu)), 0.0)

    def take_gpu(self, node: str) -> None:
        """A claim of somebody has a device of a node."""
        given = {"status": {"allocation": devices.allocation(node, "gpu-0")}}
        self.see(objects.ResourceClaim, devices.claim(f"of-{node}") | given)

    def show_group(self, n: int, *, cpu: str = "8", gpus: int = 0) -> None:
        self.engine.handle(events.Seen(make.pod_group(minimum=n)), 0.0)
        for i in range(n):
            own = [f"own-{i}"] if gpus else []
            for name in own:
                self.see(objects.ResourceClaim, devices.claim(name, devices.request(count=gpus)))
            self.member(f"m{i}", "domain", *own, cpu=cpu)

    def find_domains(self) -> list[str]:
        """The domains of the nodes of the pods that are bound, each node once."""
        binds = self.decide_once()
        self.check()
        return sorted(node.split("-")[0] for node in {bind.node for bind in binds.values()})


@pytest.mark.parametrize("mode", [Mode.KEEL, Mode.LEAST_ALLOCATED])
def test_a_group_goes_to_the_only_domain_with_room_for_all_of_it(mode: Mode) -> None:
    world = DomainWorld(mode=mode)
    for domain in range(_DOMAINS - 1):
        world.fill(f"n{domain:02}-{domain % _SIZE}")
    world.show_group(_SIZE)
    assert world.find_domains() == ["n24"] * _SIZE


def test_a_group_goes_to_the_only_domain_with_devices_for_all_of_it() -> None:
    """What nodes have of CPU would do everywhere."""
    world = DomainWorld()
    for domain in range(_DOMAINS - 1):
        world.take_gpu(f"n{domain:02}-0")
    world.show_group(_SIZE, cpu="1", gpus=4)
    assert world.find_domains() == ["n24"] * _SIZE


def test_a_domain_whose_own_device_is_taken_is_no_choice() -> None:
    world = DomainWorld(domains=4)
    for domain in range(3):
        given = devices.allocation(f"domain-{domain}", "channel-0", driver=_CHANNELS)
        del given["nodeSelector"]
        world.see(objects.ResourceClaim, devices.claim(f"of-{domain}") | {"status": {"allocation": given}})  # fmt: skip
    world.show_group(_SIZE)
    assert world.find_domains() == ["n03"] * _SIZE


def test_a_group_goes_to_the_domain_with_the_least_room() -> None:
    world = DomainWorld(domains=3)
    for i in range(4):
        world.fill(f"n01-{i}")
    world.show_group(4)
    assert world.find_domains() == ["n01"] * 4


def test_a_group_that_fits_in_no_domain_waits() -> None:
    world = DomainWorld(domains=5)
    for domain in range(5):
        world.fill(f"n{domain:02}-0")
    world.show_group(_SIZE)
    assert world.find_domains() == []
    assert world.n_taken == 0


def test_a_group_with_pods_that_do_not_have_the_claim_is_placed() -> None:
    """Those may be anywhere."""
    world = DomainWorld(domains=2, size=2)
    world.engine.handle(events.Seen(make.pod_group(minimum=4)), 0.0)
    for i in range(4):
        world.member(f"m{i}", *(["domain"] if i < 2 else []), cpu="8")
    assert world.find_domains() == ["n00", "n00", "n01", "n01"]


class SmallWorld(SharedWorld):
    """A few nodes of a few domains, and a group."""

    def __init__(self, spots: tuple[Spot, ...], free: frozenset[int], members: tuple[Member, ...]) -> None:  # fmt: skip
        super().__init__()
        self.engine = Engine(Config())
        for name, driver in (("gpu", devices.DRIVER), ("channel", _CHANNELS)):
            self.see(objects.DeviceClass, devices.device_class(name, f"device.driver == '{driver}'"))  # fmt: skip
        for domain in free:
            self.see(objects.ResourceSlice, make_channel(domain))
        for i, spot in enumerate(spots):
            node = make.node(name=f"n{i}", cpu=str(spot.cpu), labels={"domain": str(spot.domain)})
            self.engine.handle(events.Seen(node), 0.0)
            there = [device(f"gpu-{k}") for k in range(spot.gpus)]
            self.see(objects.ResourceSlice, device_slice(f"n{i}", there))
        self.see(objects.ResourceClaim, devices.claim("domain", devices.request(of_class="channel")))  # fmt: skip
        self.engine.handle(events.Seen(make.pod_group(minimum=len(members))), 0.0)
        for i, one in enumerate(members):
            names = ["domain"] if one.shares else []
            if one.gpus:
                names.append(f"own-{i}")
                self.see(objects.ResourceClaim, devices.claim(f"own-{i}", devices.request(count=one.gpus)))  # fmt: skip
            self.member(f"m{i}", *names, cpu=str(one.cpu))


_spots = st.lists(
    st.builds(Spot, domain=st.integers(0, 2), cpu=st.integers(1, 3), gpus=st.integers(0, 2)),
    min_size=1,
    max_size=5,
).map(tuple)
_members = st.lists(
    st.builds(Member, shares=st.booleans(), cpu=st.integers(1, 2), gpus=st.integers(0, 1)),
    min_size=2,
    max_size=4,
).map(tuple)


@settings(max_examples=slices.count_examples(400), deadline=None)
@given(_spots, st.frozensets(st.integers(0, 2)), _members)
def test_a_group_is_placed_whenever_there_is_a_way(
    spots: tuple[Spot, ...], free: frozenset[int], members: tuple[Member, ...]
) -> None:
    world = SmallWorld(spots, free, members)
    binds = world.decide_once()
    assert len(binds) == (len(members) if oracle.fits(spots, free, members) else 0)
    world.check()
    domains = {
        spots[int(bind.node[1:])].domain
        for i, one in enumerate(members)
        if one.shares and (bind := binds.get(f"uid-m{i}")) is not None
    }
    assert len(domains) <= 1
