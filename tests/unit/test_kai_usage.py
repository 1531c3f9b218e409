"""What KAI's queues have used goes on after a restart: it stands on their objects, and is read to the last digit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import kai, names, wire
from scheduler.api.door import events
from scheduler.api.door.notes import QueueRead
from scheduler.api.queues import configuration
from scheduler.api.queues.kai import CARD, NOTHING, KaiQueue
from scheduler.api.queues.kai_usage import UsageRecord, read_record, write_record
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.kai_queues import UsageOfKaiQueues
from scheduler.errors import ApiError, BadInput
from scheduler.kube.queues.kai_usage import UsageWriter
from scheduler.tenancy.kai.tree import Figures, Tree
from scheduler.tenancy.kai.usage import Usage
from tests import make

Json = dict[str, Any]
NOW = 1_800_000_000.0
HALF = 3600.0
TOTAL = (1000, 1000, 4 * CARD)
PART = st.floats(0.0, 1e6)
PARTS = st.tuples(PART, PART, PART)


@given(st.builds(UsageRecord, st.floats(0.0, 2.0**40), st.floats(0.0, 1.0), PARTS, PARTS))
def test_a_record_is_read_as_it_was_written(record: UsageRecord) -> None:
    assert read_record({names.KAI_USAGE: write_record(record)}) == record


def make_text(**changes: Any) -> str:
    record = UsageRecord(1.0, 0.5, (0.1, 0.2, 0.3), (0.0, 0.0, 0.0))
    return json.dumps({**record._asdict(), **changes})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a JSON object with at, weight, holds, before"),
        ("[]", "is not a JSON object"),
        ("{}", "is not a JSON object"),
        ("{" * 9999, "is not a JSON object"),
        (make_text(more=1), "is not a JSON object"),
        (make_text(at=-1), "at: -1 is not a number from 0"),
        (make_text(at="now"), "at: 'now' is not a number"),
        (make_text(weight=2), "weight: 2 is not a number from 0 to 1"),
        (make_text(weight=True), "weight: "),
        (make_text(holds=[0.5]), "holds: [0.5] is not a list of three numbers"),
        (make_text(before=[0, 0, None]), "before: "),
        (make_text(before=0), "before: 0 is not a list"),
    ],
)
def test_what_is_no_record_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        read_record({names.KAI_USAGE: text})
    assert str(error.value).startswith(f"metadata.annotations[{names.KAI_USAGE}]: ")
    assert said in str(error.value)
    assert len(str(error.value)) < 400


def make_world() -> tuple[Tree, Usage]:
    tree, usage = Tree(1.0), Usage(HALF)
    for name in "ab":
        tree.put(KaiQueue(name))
    tree.settle()
    tree.add("a", Figures((500, 0, CARD), NOTHING, NOTHING), 1)
    return tree, usage


def restart(usage: Usage) -> Usage:
    """What another process knows by the objects."""
    again = Usage(HALF)
    for name, record in usage.list_records():
        again.note_record(name, read_record({names.KAI_USAGE: write_record(record)}))
    return again


def test_a_restart_goes_on_to_the_last_digit() -> None:
    tree, usage = make_world()
    for at in (0.0, 1000.0, 5000.0):
        usage.sample(tree, TOTAL, at)
    again = restart(usage)
    assert again.find_parts() == {}
    for at in (7000.0, 9000.0):
        for one in (usage, again):
            one.sample(tree, TOTAL, at)
        assert again.find_parts() == usage.find_parts()
        assert usage.find_parts()["a"] != (0.0, 0.0, 0.0)


def test_only_what_is_newer_is_taken_over_and_nothing_of_a_time_to_come() -> None:
    tree, usage = make_world()
    usage.sample(tree, TOTAL, 1000.0)
    usage.sample(tree, TOTAL, 2000.0)
    known = usage.list_records()
    used = (1.0, 1.0, 1.0)
    for at in (1500.0, 2000.0, 9999.0):
        usage.note_record("b", UsageRecord(at, 1.0, used, used))
        usage.sample(tree, TOTAL, 2000.0)
        assert usage.list_records() == known
    # Another replica has led meanwhile.
    usage.note_record("b", UsageRecord(3000.0, 1.0, used, used))
    usage.sample(tree, TOTAL, 3000.0)
    assert usage.find_parts()["b"] == (1.0, 1.0, 1.0)
    # It was this replica that measured the other queue.
    assert usage.find_parts()["a"][0] == pytest.approx(0.5 * (1 - 0.5 ** (2000 / HALF)))
    usage.note_record("b", None)
    usage.sample(tree, TOTAL, 3000.0)
    assert usage.find_parts()["b"] == (1.0, 1.0, 1.0)


class Api:
    """An API server that takes what is written, or refuses it."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        self.trouble: ApiError | None = None

    async def send(self, method: str, path: str, body: Json, *, content_type: str) -> bytes:
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        if self.trouble is not None:
            raise self.trouble
        (key,) = body["metadata"]["annotations"]
        assert key == names.KAI_USAGE
        self.written[path.rpartition("/")[2]] = body["metadata"]["annotations"][key]
        return b""


def make_engine(annotations: dict[str, str]) -> tuple[Engine, list[QueueRead]]:
    engine = Engine(Config(queues=configuration.read_settings({"kai": {"usage": True}})))
    engine.handle(events.Seen(make.node(name="n", gpus=4)), NOW)
    free = {"quota": -1, "limit": -1}
    said: list[QueueRead] = []
    for name in "ab":
        note = {names.KAI_USAGE: annotations[name]} if name in annotations else None
        meta = wire.Meta(name=name, uid=name, annotations=note)
        spec = {"resources": {"cpu": free, "memory": free, "gpu": free}}
        found = engine.handle(events.Seen(kai.Queue(metadata=meta, spec=spec)), NOW)
        said += [one for one in found if isinstance(one, QueueRead)]
    engine.handle(events.Seen(make.pod(name="x", labels={names.KAI_QUEUE: "a"}, gpu=2)), NOW)
    return engine, said


async def test_what_was_used_is_written_on_the_objects_and_the_next_process_reads_it() -> None:
    engine, _ = make_engine({})
    api, is_leading = Api(), [True]
    given: Any = api
    writer = UsageWriter(given, engine, lambda: is_leading[0])
    await writer.write()
    assert api.written == {}
    for at in (NOW, NOW + 60, NOW + 3600):
        engine.decide(at, Unlimited())
    await writer.write()
    assert api.written.keys() == {"a", "b"}
    again, said = make_engine(api.written)
    assert [one.problem for one in said] == ["", ""]
    for one in (engine, again):
        one.decide(NOW + 7200, Unlimited())
    assert again._kai.accounts.usage.find_parts() == engine._kai.accounts.usage.find_parts()
    # What cannot be written, and what another replica writes, is left.
    before = dict(api.written)
    api.trouble = ApiError(500, "InternalError", "no")
    await writer.write()
    api.trouble, is_leading[0] = None, False
    await writer.write()
    assert api.written == before
    assert engine.ask(UsageOfKaiQueues()) != []


def test_a_wrong_annotation_is_reported_and_the_queue_goes_on() -> None:
    engine, said = make_engine({"a": "{}"})
    assert said[0].problem.startswith(f"metadata.annotations[{names.KAI_USAGE}]: ")
    assert said[1].problem == ""
    outcome = engine.decide(NOW, Unlimited())
    assert [bind.uid for bind in outcome.binds] == ["default/x"]
