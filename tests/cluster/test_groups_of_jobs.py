"""Kubernetes' own Job controller makes the groups of Jobs (gate WorkloadWithJob): each is placed once, as one gang."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from tests.cluster.test_groups import GROUPS
from tests.operator import crds, servers
from tests.operator.manifests import container
from tests.operator.world import World

Json = dict[str, Any]
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_WORKLOADS = GROUPS.replace("podgroups", "workloads")
_N = 4


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    """An API server and a controller manager that make groups of Jobs."""
    gates, served = crds.FLAGS
    gates += ",WorkloadWithJob=true"
    with servers.real(extra_apiserver_flags=(gates, served)) as running:
        assert running.plane is not None
        running.plane.start_controller_manager(
            ("job-controller", "podgroup-protection-controller", "garbage-collector-controller"),
            extra_flags=[gates],
        )
        yield running


def make_job(name: str, annotations: dict[str, str]) -> Json:
    """A Job of four pods, of which two fill a node, that its controller makes a gang."""
    template = {
        "spec": {
            "schedulerName": "evenkeel",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container(requests={"cpu": "2"})],
        }
    }
    spec = {
        "completionMode": "Indexed",
        "completions": _N,
        "parallelism": _N,
        "scheduling": {"schedulingPolicy": {"gang": {}}},
        "template": template,
    }
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


@pytest.mark.parametrize("annotations", [{}, {"evenkeel.dev/gang": "all"}], ids=["plain", "asked"])
async def test_a_job_gets_one_group_and_is_placed_whole_or_not_at_all(
    world: World, annotations: dict[str, str]
) -> None:
    """Whoever asks Evenkeel for a gang as well gets no second group."""
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    operator = await world.start_operator()
    await world.call("POST", _JOBS, make_job("train", annotations))
    pods = await world.wait_until(world.pods, lambda found: len(found) == _N)
    [group] = await world.listed(GROUPS)
    assert len(await world.listed(_WORKLOADS)) == 1
    name = group["metadata"]["name"]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {name}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": _N}}
    await world.refused(name, "2 of the 4 pods that must be placed at once fit")
    assert not [pod for pod in await world.pods() if "nodeName" in pod["spec"]]
    waiting = 'evenkeel_pending_groups{queue="unschedulable"}'
    await world.measured(operator, lambda found: found.get(waiting) == 1)
    await world.create(nodes.make_plain_node("n1", cpu="4"))
    bound = await world.all_bound(_N)
    assert len(bound) == _N
    await world.call("DELETE", f"{_JOBS}/train", {"propagationPolicy": "Background"})
    await world.wait_until(lambda: world.listed(GROUPS), lambda found: not found)


async def test_the_group_of_a_job_without_a_policy_holds_no_pod_back(world: World) -> None:
    """Its controller makes a basic group then."""
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    await world.start_operator()
    job = make_job("loose", {})
    del job["spec"]["scheduling"]
    await world.call("POST", _JOBS, job)
    await world.all_bound(2)
    [group] = await world.listed(GROUPS)
    assert group["spec"]["schedulingPolicy"] == {"basic": {}}
    await world.call("DELETE", f"{_JOBS}/loose", {"propagationPolicy": "Background"})
    await world.wait_until(lambda: world.listed(GROUPS), lambda found: not found)
