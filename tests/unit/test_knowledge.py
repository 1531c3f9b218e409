"""What a scheduler could have known: the log's order decides whether a bind was wrong."""

from __future__ import annotations

import json
from typing import Any

from tests.operator import knowledge

Json = dict[str, Any]

NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "pods": "10"}},
}


def _pod(uid: str, node: str = "", name: str = "evenkeel") -> Json:
    asked = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"nodeName": node, "schedulerName": name, "containers": asked}
    return {"type": "event", "event": {"type": "Seen", "found": {"kind": "Pod", "metadata": {"name": uid, "uid": uid}, "spec": spec}}}  # fmt: skip


def _bind(uid: str) -> Json:
    return {"type": "decide", "binds": [{"uid": uid, "node": "n", "devices": []}]}


def _event(what: str, **fields: Any) -> Json:
    return {"type": "event", "event": {"type": what, **fields}}


def _replayed(*lines: Json) -> knowledge.Known:
    return knowledge.replayed(json.dumps(line).encode() for line in lines)


_START = (_event("Seen", found=NODE), _pod("ours"))
_THEIRS = _pod("theirs", "n", "rival")


def test_a_bind_to_a_node_that_was_known_to_be_full_is_wrong() -> None:
    known = _replayed(*_START, _THEIRS, _bind("ours"))
    assert known.wrongs == ["n: 2.0 of cpu asked, 1.0 there"]


def test_what_was_heard_of_after_the_bind_could_not_be_known() -> None:
    known = _replayed(
        *_START, _bind("ours"), _THEIRS, _pod("next"), _event("Gone", kind="Pod", key="theirs")
    )
    assert (known.wrongs, known.binds) == ([], ["ours"])


def test_one_more_on_a_node_that_both_have_filled_is_wrong() -> None:
    known = _replayed(*_START, _bind("ours"), _THEIRS, _pod("next"), _bind("next"))
    assert known.wrongs == ["n: 3.0 of cpu asked, 1.0 there"]
    assert known.heard_between == 1


def test_a_bind_that_failed_and_a_pod_that_went_give_room_back() -> None:
    known = _replayed(
        *_START,
        _bind("ours"),
        _event("BindFailed", uid="ours", message="no"),
        _bind("ours"),
        _event("Gone", kind="Pod", key="ours"),
        _pod("next"),
        _bind("next"),
    )
    assert known.wrongs == []
