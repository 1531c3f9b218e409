from collections.abc import Callable
from typing import Any

import pytest

from scheduler.embedded.api.server import Settings
from scheduler.embedded.cluster import Cluster
from tests.embedded.conftest import Api


async def version(api: Api) -> str:
    found: str = (await api.get(api.pods))["metadata"]["resourceVersion"]
    return found


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    await api.pod("a")
    async with api.watch(api.pods) as watch:
        await api.pod("b")
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_watch_from_a_version_replays_what_came_after(api: Api) -> None:
    start = await version(api)
    await api.pod("a")
    await api.merge(f"{api.pods}/a", {"metadata": {"labels": {"x": "y"}}})
    await api.delete(f"{api.pods}/a")
    async with api.watch(api.pods, resourceVersion=start) as watch:
        events = [await watch.next() for _ in range(4)]
    # A deleted pod is first marked, then removed.
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert "deletionTimestamp" in events[2]["object"]["metadata"]
    numbers = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert numbers == sorted(set(numbers))
    assert {event["object"]["kind"] for event in events} == {"Pod"}


async def test_a_watch_sees_only_its_namespace_kind_and_name(api: Api) -> None:
    start = await version(api)
    async with api.watch(api.pods, resourceVersion=start, fieldSelector="metadata.name=b") as watch:
        await api.made(api.at("configmaps"), {"metadata": {"name": "b"}})
        await api.made("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "b"}})
        await api.pod("a")
        await api.pod("b")
        assert await watch.take(1) == [("ADDED", "b")]
        assert await watch.silent()


async def test_an_object_that_begins_to_match_is_added_and_one_that_stops_is_deleted(
    api: Api,
) -> None:
    start = await version(api)
    selector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
    async with api.watch(api.pods, resourceVersion=start, fieldSelector=selector) as watch:
        await api.pod("a")
        assert (await api.bind("a", "n1")).code == 201
        added = await watch.next()
        assert (added["type"], added["object"]["spec"]["nodeName"]) == ("ADDED", "n1")
        await api.merge(f"{api.pods}/a", {"metadata": {"labels": {"x": "y"}}})
        assert (await watch.next())["type"] == "MODIFIED"
        await api.merge(f"{api.pods}/a/status", {"status": {"phase": "Succeeded"}})
        gone = await watch.next()
        assert gone["type"] == "DELETED"
        # The last state that matched, under the version of the change.
        assert gone["object"]["status"]["phase"] == "Pending"
        now = (await api.get(f"{api.pods}/a"))["metadata"]["resourceVersion"]
        assert gone["object"]["metadata"]["resourceVersion"] == now
        await api.delete(f"{api.pods}/a")
        assert await watch.silent()


async def test_label_selectors_follow_changes_too(api: Api) -> None:
    start = await version(api)
    async with api.watch(api.pods, resourceVersion=start, labelSelector="app=x") as watch:
        await api.pod("a", labels={"app": "x"})
        await api.pod("b", labels={"app": "y"})
        await api.merge(f"{api.pods}/a", {"metadata": {"labels": {"app": "z"}}})
        await api.merge(f"{api.pods}/b", {"metadata": {"labels": {"app": "x"}}})
        assert await watch.take(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_the_two_pod_streams_of_the_operator_never_share_a_pod(api: Api) -> None:
    ours = "spec.schedulerName=evenkeel,status.phase!=Succeeded,status.phase!=Failed"
    others = (
        "spec.nodeName!=,spec.schedulerName!=evenkeel,status.phase!=Succeeded,status.phase!=Failed"
    )
    start = await version(api)
    async with (
        api.watch(api.pods, resourceVersion=start, fieldSelector=ours) as mine,
        api.watch(api.pods, resourceVersion=start, fieldSelector=others) as rest,
    ):
        await api.pod("a", schedulerName="evenkeel")
        await api.pod("b")
        await api.bind("a", "n")
        await api.bind("b", "n")
        assert await mine.take(2) == [("ADDED", "a"), ("MODIFIED", "a")]
        assert await rest.take(1) == [("ADDED", "b")]
        assert await mine.silent()
        assert await rest.silent()


async def test_initial_events_end_with_an_annotated_bookmark(api: Api) -> None:
    await api.pod("a")
    await api.pod("b")
    async with api.watch(
        api.pods,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as watch:
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        mark = await watch.any()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "Pod"
        meta = mark["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(meta["resourceVersion"]) > 1
        # An empty Go object: a typed client has to survive this.
        assert mark["object"]["spec"] == {"containers": None}
        await api.pod("c")
        assert await watch.take(1) == [("ADDED", "c")]


async def test_a_watch_that_wants_no_initial_events_gets_none(api: Api) -> None:
    await api.pod("a")
    async with api.watch(
        api.pods, sendInitialEvents="false", resourceVersionMatch="NotOlderThan"
    ) as watch:
        await api.pod("b")
        assert await watch.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (
            {"sendInitialEvents": "true"},
            (
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting"
                " resourceVersionMatch to NotOlderThan"
            ),
        ),
        (
            {"resourceVersionMatch": "NotOlderThan"},
            (
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless"
                " sendInitialEvents is provided"
            ),
        ),
    ],
)
async def test_options_that_make_no_sense_are_refused(api: Api, query: Any, text: str) -> None:
    reply = await api.get(api.pods, watch="true", **query)
    assert reply.code == 422
    assert reply["message"] == f'ListOptions.meta.k8s.io "" is invalid: {text}'


async def test_a_watch_ends_after_its_timeout(api: Api) -> None:
    async with api.watch(api.pods, timeoutSeconds=1) as watch:
        assert await watch.ended()


async def test_a_future_version_waits_and_skips_what_is_older(api: Api) -> None:
    future = int(await version(api)) + 50_000
    async with api.watch(api.pods, resourceVersion=future, timeoutSeconds=1) as watch:
        await api.pod("a")
        assert await watch.ended()


async def test_watches_can_ask_for_tables(api: Api) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    async with api.watch(api.pods, accept=accept) as watch:
        await api.pod("a")
        event = await watch.next()
    assert event["object"]["kind"] == "Table"
    assert event["object"]["rows"][0]["cells"][0] == "a"
    assert event["object"]["rows"][0]["object"]["metadata"]["name"] == "a"


@pytest.mark.parametrize("cluster", [Settings(bookmark_seconds=0.05)], indirect=True)
@pytest.mark.usefixtures("cluster")
async def test_bookmarks_move_a_silent_watch_on(api: Api) -> None:
    start = await version(api)
    async with api.watch(api.pods, resourceVersion=start, allowWatchBookmarks="true") as watch:
        await api.made(api.at("configmaps"), {"metadata": {"name": "x"}})
        mark = await watch.any()
        assert mark["type"] == "BOOKMARK"
        assert int(mark["object"]["metadata"]["resourceVersion"]) > int(start)
        assert "annotations" not in mark["object"]["metadata"]
    async with api.watch(api.pods, resourceVersion=start) as watch:
        with pytest.raises(TimeoutError):
            await watch.any(0.2)


async def test_a_version_that_is_no_longer_known_is_an_error_event(
    api: Api, cluster: Cluster
) -> None:
    start = await version(api)
    await api.pod("a")
    cluster.store.compact("pods")
    async with api.watch(api.pods, resourceVersion=start) as watch:
        event = await watch.next()
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith(f"too old resource version: {start} (")
        assert await watch.ended()
    async with api.watch(api.pods, resourceVersion=await version(api)) as watch:
        await api.pod("b")
        assert await watch.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize("cluster", [Settings(history=5)], indirect=True)
async def test_history_is_as_long_as_its_window(api: Api, cluster: Cluster) -> None:
    start = await version(api)
    for number in range(11):
        await api.pod(f"p{number}")
    async with api.watch(api.pods, resourceVersion=start) as watch:
        assert (await watch.next())["object"]["code"] == 410
    bucket = cluster.store.get_bucket("pods")
    async with api.watch(api.pods, resourceVersion=bucket.compacted) as watch:
        assert await watch.take(5) == [("ADDED", f"p{number}") for number in range(6, 11)]


async def test_open_watches_can_be_dropped_from_the_server_side(api: Api, cluster: Cluster) -> None:
    async with api.watch(api.pods) as watch:
        await api.pod("a")
        await watch.next()
        cluster.store.drop_watches("pods")
        assert await watch.ended()


async def test_a_client_that_hangs_up_leaves_no_watcher_behind(
    api: Api, cluster: Cluster, settled: Callable[..., Any]
) -> None:
    async with api.watch(api.pods):
        await settled(lambda: len(cluster.store.get_bucket("pods").watchers) == 1)
    await settled(lambda: not cluster.store.get_bucket("pods").watchers)
