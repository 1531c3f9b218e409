"""What is reported on the objects of groups is forgotten with the pods that stood for them."""

from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.door.notes import GroupHeld
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube.report.groups import GroupReports
from tests import make

GANG = GroupKey("PodGroup.scheduling.k8s.io", "default", "gang")


class Texts:
    """A reporter that keeps which objects have a last text."""

    def __init__(self) -> None:
        self.about: list[str] = []

    def report_on_group(self, group: Any, *_: Any) -> None:
        self.about.append(group.uid)

    def forget_text(self, uid: str) -> None:
        self.about.remove(uid)


def test_a_text_about_a_group_is_forgotten_with_the_pod_that_stood_for_it() -> None:
    engine, texts = Engine(Config()), Texts()
    engine.handle(events.Seen(make.pod_group("gang", 2)), 0.0)
    engine.handle(events.Seen(make.member(make.pod(name="p"))), 0.0)
    reports = GroupReports(engine, texts, lambda: True)  # type: ignore[arg-type]
    reports.report_held(GroupHeld(GANG, "default/p", "needs 2 pods, and 1 exist", False))
    assert texts.about == ["uid of gang"]
    reports.forget_pod("default/other")
    assert texts.about == ["uid of gang"]
    for _ in range(2):
        reports.forget_pod("default/p")
        assert not texts.about


class Statuses(Texts):
    """A reporter that keeps the statuses of groups of other systems."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[dict[str, Any]] = []

    def report_unschedulable(self, *_: Any, **__: Any) -> None:
        pass

    def report_group_status(self, _: Any, status: dict[str, Any]) -> None:
        self.written.append(status)


@pytest.mark.parametrize(
    ("kind", "note", "waits", "placed"),
    [
        (
            objects.KaiPodGroup,
            names.KAI_GROUP,
            ("schedulingConditions", "UnschedulableOnNodePool", "Unschedulable"),
            None,
        ),
        (
            objects.VolcanoPodGroup,
            names.VOLCANO_GROUP,
            ("conditions", "Unschedulable", "NotEnoughResources"),
            ("Scheduled", "tasks in gang are ready to be scheduled"),
        ),
    ],
)
def test_groups_of_other_systems_have_the_status_of_their_system(
    kind: type[Any], note: str, waits: tuple[str, str, str], placed: tuple[str, str] | None
) -> None:
    engine, statuses = Engine(Config()), Statuses()
    reports = GroupReports(engine, statuses, lambda: True)  # type: ignore[arg-type]
    meta = wire.Meta(name="g", namespace="default", uid="g")
    engine.handle(events.Seen(kind(meta, {"minMember": 2})), 0.0)
    for i in range(2):
        engine.handle(events.Seen(make.pod(name=f"p{i}", cpu=2, annotations={note: "g"})), 0.0)
    for at in (1.0, 400.0):
        # The same text is written once, however often the group is tried.
        for plan in engine.decide(at, Unlimited()).plans:
            list(reports.report_plan(plan))
    (status,) = statuses.written
    field, type_, reason = waits
    (condition,) = status[field]
    assert (condition["type"], condition["reason"], condition["status"]) == (type_, reason, "True")
    assert "0 of the 2 pods" in condition["message"]
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 401.0)
    for plan in engine.decide(402.0, Unlimited()).plans:
        list(reports.report_plan(plan))
    last = statuses.written[-1][field]
    assert (last and (last[0]["type"], last[0]["reason"])) == placed
