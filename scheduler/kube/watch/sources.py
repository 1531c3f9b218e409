"""What is read of the cluster: streams of what there can be many of, and the rare kinds once at the start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from scheduler.api import events, names, wire
from scheduler.config import Config
from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.client import ApiClient, backoff
from scheduler.kube.watch import listing
from scheduler.kube.watch.streams import Stream

Put = Callable[[events.Heard], None]

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_POLICIES = f"/apis/{names.GROUP}/{names.VERSION}/{names.POLICIES}"
_LATE_SECONDS = 5.0
_log = structlog.get_logger("evenkeel")


def streams(
    api: ApiClient, config: Config, put: Put
) -> tuple[list[Stream[wire.Pod]], Stream[wire.Node]]:
    """The streams of pods, ours first, and that of nodes.

    Args:
        api: the API server.
        config: whose pods are ours, and how much of one is read.
        put: takes all that is heard of, as events.
    """
    read_pod = listing.read_pod(config.pod_limits)

    def on_pod(kind: str, pod: wire.Pod) -> None:
        put(events.PodGone(pod.metadata.uid) if kind == "DELETED" else events.PodSeen(pod))

    def on_list(is_ours: bool, pods: list[wire.Pod]) -> None:
        put(events.PodsListed(pods, ours=is_ours))

    def on_node(kind: str, node: wire.Node) -> None:
        put(events.NodeGone(node.metadata.name) if kind == "DELETED" else events.NodeSeen(node))

    pods = [
        Stream(
            name,
            api,
            listing.PODS,
            {"fieldSelector": selector},
            read=read_pod,
            on_list=partial(on_list, is_ours),
            on_event=on_pod,
        )
        for name, selector, is_ours in (
            ("pods-ours", f"spec.schedulerName={config.scheduler_name},{UNFINISHED}", True),
            (
                "pods-others",
                f"spec.nodeName!=,spec.schedulerName!={config.scheduler_name},{UNFINISHED}",
                False,
            ),
        )
    ]
    nodes = Stream(
        "nodes",
        api,
        listing.NODES,
        {},
        read=listing.read_node,
        on_list=lambda nodes: put(events.NodesListed(nodes)),
        on_event=on_node,
    )
    return pods, nodes


async def read_rare_kinds(api: ApiClient, put: Put) -> bool:
    """Policies and namespaces before the first pod, so that none is placed without them.

    Tries until they can be read. Returns whether there are policies, which is to say their CRD.
    """
    attempt = 0
    while True:
        try:
            return await _read_rare_kinds(api, put)
        except ApiError as error:
            wait = backoff(attempt, first=0.5, most=5.0)
            attempt += 1
            _log.warning("the API server cannot be read yet", error=str(error), retry_seconds=wait)
            await asyncio.sleep(wait)


async def late_policies(api: ApiClient, put: Put, is_heard: Callable[[], bool]) -> None:
    """Policies whose CRD was not there at the start, until kopf tells of them.

    kopf looks for a new kind when its CRD changes; the API server may offer the kind only after the last
    of these changes, and then kopf never finds it.
    """
    known: set[str] = set()
    while not is_heard():
        await asyncio.sleep(_LATE_SECONDS)
        try:
            found = (await api.get(_POLICIES))["items"]
        except ApiError:
            continue  # not there yet, and the rest of trouble others tell of
        if is_heard():
            return
        for policy in found:
            put(events.PolicySeen(policy))
        there = {policy["metadata"]["name"] for policy in found}
        for name in known - there:
            put(events.PolicyGone(name))
        known = there


async def _read_rare_kinds(api: ApiClient, put: Put) -> bool:
    for namespace in (await api.get("/api/v1/namespaces"))["items"]:
        metadata = namespace["metadata"]
        put(events.NamespaceSeen(metadata["name"], metadata.get("labels") or {}))
    try:
        found = await api.get(_POLICIES)
    except ApiError as error:
        if not answers.is_not_found(error):
            raise
        _log.warning("the BalancePolicy CRD is not installed; pods are placed by the configuration")
        return False
    for policy in found["items"]:
        put(events.PolicySeen(policy))
    return True
