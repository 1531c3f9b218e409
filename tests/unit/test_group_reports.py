"""What is reported on the objects of groups is forgotten with the pods that stood for them."""

from typing import Any

from scheduler.api.door import events
from scheduler.api.door.notes import GroupHeld
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
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
