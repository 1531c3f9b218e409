"""What becomes of Kueue's objects on a real API server: who is deactivated, and what stays until it may go."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from scheduler.api import names
from tests.operator import tenants
from tests.operator.world import Refused, World

Json = dict[str, Any]
_TOPOLOGIES = f"{tenants.API}/topologies"


async def a_workload_that_a_check_rejects_is_deactivated(world: World, name: str) -> None:
    """A workload that has passed its check, which changes its mind."""
    found = await tenants.read_workload(world, name)
    (check,) = found["status"]["admissionChecks"]
    rejected = [check | {"state": "Rejected", "message": "no money left"}]
    path = f"{tenants.WORKLOADS}/{name}"
    await world.call("PATCH", f"{path}/status", {"status": {"admissionChecks": rejected}})
    evicted = await tenants.becomes(world, name, "Evicted", "True")
    reason = "DeactivatedDueToAdmissionCheck"
    assert tenants.list_conditions(evicted)["Evicted"] == ("True", reason)
    assert "DeactivationTarget" not in tenants.list_conditions(evicted)
    assert evicted["spec"]["active"] is False
    assert evicted["status"]["schedulingStats"]["evictions"] == [
        {"reason": "Deactivated", "underlyingCause": "AdmissionCheck", "count": 1}
    ]
    await world.wait_until(partial(world.events, "AdmissionCheckRejected", name))
    await world.wait_until(partial(world.events, f"EvictedDueTo{reason}", name))


async def a_deleted_queue_stays_until_its_workload_has_ended(world: World) -> None:
    await tenants.make_queue(world, "leaving", "going")
    queue = f"{tenants.QUEUES}/leaving"
    await world.wait_until(partial(world.call, "GET", queue), _is_kept)
    await tenants.submit(world, "last", "leaving", 1)
    await tenants.becomes(world, "last", "Admitted", "True")
    await world.call("DELETE", queue)
    status = await tenants.has_status(world, queue, reservingWorkloads=1)
    await world.wait_until(
        partial(world.call, "GET", queue),
        lambda found: found["status"]["conditions"][0]["reason"] == "Terminating",
    )
    assert status["conditions"][0]["type"] == "Active"
    await tenants.submit(world, "too-late", "leaving", 1)
    await tenants.becomes(world, "too-late", "QuotaReserved", "False")
    await world.call("DELETE", f"{tenants.WORKLOADS}/last")
    await world.wait_until(partial(_is_gone, world, queue))


async def a_topology_stays_while_a_flavor_needs_it(world: World) -> None:
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    await tenants.create(world, _TOPOLOGIES, "Topology", "racks", {"levels": levels})
    topology, flavors = f"{_TOPOLOGIES}/racks", f"{tenants.API}/resourceflavors"
    await world.wait_until(partial(world.call, "GET", topology), _is_kept)
    spec = {"nodeLabels": {"pool": "gpu"}, "topologyName": "racks"}
    await tenants.create(world, flavors, "ResourceFlavor", "in-racks", spec)
    await world.wait_until(partial(world.call, "GET", f"{flavors}/in-racks"), _is_kept)
    await world.call("DELETE", topology)
    await world.call("DELETE", f"{flavors}/in-racks")
    await world.wait_until(partial(_is_gone, world, topology))
    assert await _is_gone(world, f"{flavors}/in-racks")


async def read_usage(world: World, name: str) -> Json:
    """Read what a local queue has used over time; empty if nothing is written of it."""
    found = await world.call("GET", f"{tenants.LOCALS}/{name}")
    sharing: Json = found.get("status", {}).get("fairSharing", {})
    usage: Json = sharing.get("admissionFairSharingStatus", {})
    return usage


def _is_kept(found: Json) -> bool:
    return names.KUEUE_IN_USE in found["metadata"].get("finalizers", ())


async def _is_gone(world: World, path: str) -> bool:
    with suppress(Refused):
        await world.call("GET", path)
        return False
    return True
