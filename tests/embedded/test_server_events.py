"""Two Event APIs, one storage."""

from typing import Any

from tests.embedded.conftest import Api

NEW = "apis/events.k8s.io/v1"


def core(api: Api, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u-1"}
    return {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "type": "Warning",
        "source": {"component": "evenkeel"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 2,
        **more,
    }


def new(api: Api, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace, "uid": "u-1"}
    return {
        "metadata": {"name": "e"},
        "regarding": about,
        "reason": "Scheduled",
        "note": "bound",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "reportingController": "evenkeel",
        "reportingInstance": "evenkeel-0",
        **more,
    }


async def test_a_core_event_reads_as_a_new_one(api: Api) -> None:
    await api.made(api.at("events"), core(api))
    read = await api.get(f"{api.at('events', NEW)}/e")
    assert (read["apiVersion"], read["kind"]) == ("events.k8s.io/v1", "Event")
    assert read["regarding"]["name"] == "p"
    assert read["note"] == "0/1 nodes are available"
    assert read["deprecatedSource"] == {"component": "evenkeel"}
    assert read["deprecatedCount"] == 2
    assert read["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    assert not {"involvedObject", "message", "count", "firstTimestamp"} & read.body.keys()


async def test_a_new_event_reads_as_a_core_one(api: Api) -> None:
    await api.made(api.at("events", NEW), new(api))
    read = await api.get(f"{api.at('events')}/e")
    assert (read["apiVersion"], read["kind"]) == ("v1", "Event")
    assert read["involvedObject"]["uid"] == "u-1"
    assert read["message"] == "bound"
    assert read["reportingComponent"] == "evenkeel"
    assert read["eventTime"] == "2026-01-01T00:00:00.000001Z"
    assert not {"regarding", "note", "reportingController"} & read.body.keys()
    # What kubectl describe asks.
    selector = f"involvedObject.name=p,involvedObject.namespace={api.namespace}"
    listed = await api.get(api.at("events"), fieldSelector=selector)
    assert [one["metadata"]["name"] for one in listed["items"]] == ["e"]


async def test_a_series_is_patched_through_the_new_api(api: Api) -> None:
    await api.made(api.at("events", NEW), new(api))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    reply = await api.merge(f"{api.at('events', NEW)}/e", {"series": series})
    assert reply.code == 200, reply
    assert reply["series"] == series
    assert reply["note"] == "bound"
    assert (await api.get(f"{api.at('events')}/e"))["series"] == series


async def test_both_watches_see_an_event_in_their_own_words(api: Api) -> None:
    start = (await api.get(api.at("events")))["metadata"]["resourceVersion"]
    async with (
        api.watch(api.at("events"), resourceVersion=start) as old,
        api.watch(
            api.at("events", NEW),
            resourceVersion=start,
            fieldSelector="regarding.kind=Pod,reportingController=evenkeel",
        ) as fresh,
    ):
        await api.made(api.at("events", NEW), new(api))
        first, second = await old.next(), await fresh.next()
    assert (first["object"]["apiVersion"], first["object"]["message"]) == ("v1", "bound")
    assert (second["object"]["apiVersion"], second["object"]["note"]) == (
        "events.k8s.io/v1",
        "bound",
    )


async def test_events_are_selected_by_source_reason_and_type(api: Api) -> None:
    await api.made(api.at("events"), core(api))
    for selector, count in (
        ("source=evenkeel", 1),
        ("source=other", 0),
        ("reason=FailedScheduling,type=Warning", 1),
        ("type=Normal", 0),
        ("involvedObject.kind=Pod,involvedObject.uid=u-1", 1),
    ):
        listed = await api.get(api.at("events"), fieldSelector=selector)
        assert len(listed["items"]) == count, selector


async def test_the_new_api_is_strict_where_the_old_one_is_not(api: Api) -> None:
    reply = await api.post(api.at("events", NEW), new(api, eventTime=None, type="Odd"))
    assert reply.code == 422
    assert "eventTime: Required value" in reply["message"]
    assert "type: Invalid value" in reply["message"]
    body = core(api, type="Odd", metadata={"name": "f"})
    assert (await api.post(api.at("events"), body)).code == 201


async def test_an_event_lives_where_its_object_lives(api: Api) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
    reply = await api.post(api.at("events"), core(api, involvedObject=about))
    assert reply.code == 422
    assert "involvedObject.namespace: Invalid value" in reply["message"]
    assert "does not match event.namespace" in reply["message"]
