"""What is told of pods whose claims cannot be had, and which claims lose their devices for them."""

from __future__ import annotations

from typing import Any

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.simulate import schedule
from scheduler.telling import sayings
from tests.model import claim_worlds
from tests.operator import devices
from tests.unit.test_simulate_claims import make_cluster, make_object

Json = dict[str, Any]
_CONFIG = Config(placement=Placement(mode=Mode.KUBE_SCHEDULER))
_NOT_HELPFUL = " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def tell(*objects: Json) -> str:
    """What is told of the one pod among these objects."""
    (row,) = schedule(objects, config=_CONFIG)["pods"]
    return str(row["unschedulable"])


def claim_with(*requests: Json) -> Json:
    return make_object("ResourceClaim", devices.claim("c", *requests))


def pod_with(*claims: str) -> Json:
    return make_object("Pod", devices.pod_with("p", *claims))


def test_a_class_that_is_missing_is_told_with_what_preemption_would_do() -> None:
    """The plugin for claims has read the pod, so its second part does not fail."""
    told = tell(*make_cluster(), claim_with(devices.request(of_class="none")), pod_with("c"))
    text = "0/1 nodes are available: request gpu: device class none does not exist."
    assert told == text + _NOT_HELPFUL


def test_a_claim_that_is_missing_comes_before_all_that_is_wrong_with_others() -> None:
    wrong = claim_with(devices.request(of_class="none"))
    told = tell(*make_cluster(), wrong, pod_with("c", "missing"))
    assert 'could not find ResourceClaim "default/missing"' in told


def test_too_many_devices_are_told_with_the_request_that_is_one_too_many() -> None:
    requests = (devices.request(count=30), devices.request("more", count=3))
    told = tell(*make_cluster(), claim_with(*requests), pod_with("c"))
    text = "request more: adding 3 devices exceeds the claim limit of 32, with 30 already accounted for"
    assert text in told


def test_a_node_whose_pools_are_invalid_is_told_apart_from_one_that_has_too_few_devices() -> None:
    twice = devices.device("gpu-0"), devices.device("gpu-0")
    objects = claim_with(devices.request()), pod_with("c")
    text = "0/1 nodes are available: 1 {}." + _NOT_HELPFUL
    assert tell(*make_cluster(), *objects) == text.format("cannot allocate all claims")
    found = tell(*make_cluster(*twice), *objects)
    assert found == text.format("invalid resource pools were encountered")


def allocated(name: str, zone: str) -> Json:
    """A claim that has its device in a zone."""
    here = {"key": "zone", "operator": "In", "values": [zone]}
    result = {"request": "r", "driver": "d", "pool": "p", "device": name}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [here]}]},
    }
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
        "status": {"allocation": allocation},
    }


def test_of_several_claims_one_loses_its_devices_that_are_elsewhere() -> None:
    """The first one's can be used on every node: to take them away would be in vain."""
    node = {"metadata": {"name": "n0", "labels": {"zone": "here"}}}
    claims = [allocated("near", "here"), allocated("far", "elsewhere")]
    engine = claim_worlds.make_engine({"node": node, "claims": claims})
    outcome = engine.decide(1.0, Unlimited())
    assert [one.key for one in outcome.frees] == [("ns", "far")]
    (hold,) = outcome.holds
    text = "1 resourceclaim not available on the node. deallocation of ResourceClaim completed, preemption: "
    assert text in sayings.write_sentence(hold)


def test_a_claim_whose_device_will_not_get_ready_is_of_no_use_and_is_freed() -> None:
    """Else the pod would be bound with it again and again, in vain."""
    claim = allocated("far", "here")
    result = claim["status"]["allocation"]["devices"]["results"][0]
    result |= {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    named = {key: result[key] for key in ("driver", "pool", "device")}
    node = {"metadata": {"name": "n0", "labels": {"zone": "here"}}}
    for kind, is_freed in (("Ready", False), ("Failed", True)):
        conditions = [{"type": kind, "status": "True", "reason": "Told", "message": ""}]
        claim["status"]["devices"] = [named | {"conditions": conditions}]
        outcome = claim_worlds.make_engine({"node": node, "claims": [claim]}).decide(
            1.0, Unlimited()
        )
        assert bool(outcome.frees) == is_freed
        assert bool(outcome.binds) != is_freed


def test_a_claims_own_configuration_that_is_for_all_requests_names_none() -> None:
    """Also where it names a request, and the device is for one of its alternatives."""
    own = {"requests": ["r"], "opaque": {"driver": "d", "parameters": {"speed": 1}}}
    option = {"name": "o", "deviceClassName": "any"}
    claim = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "c"},
        "spec": {
            "devices": {"requests": [{"name": "r", "firstAvailable": [option]}], "config": [own]}
        },
    }
    world = {
        "node": {"metadata": {"name": "n0"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [devices.device_slice("n0", [devices.device("gpu-0")])],
        "claims": [claim],
    }
    found = claim_worlds.allocate(world)
    assert found is not None
    assert found[0]["devices"]["config"] == [{"source": "FromClaim", "opaque": own["opaque"]}]


def test_a_node_that_lacks_devices_and_features_is_told_to_lack_devices() -> None:
    """As in kube-scheduler's order of plugins."""
    body = devices.pod_with("p", "c", hostNetwork=True, hostUsers=False)
    objects = claim_with(devices.request()), make_object("Pod", body)
    assert "1 cannot allocate all claims." in tell(*make_cluster(), *objects)
    assert "required features." in tell(*make_cluster(devices.device("gpu-0")), *objects)
