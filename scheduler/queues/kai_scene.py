"""KAI's queues that are shown, and what is in them, by name."""

from __future__ import annotations

from functools import cached_property

from scheduler.api.queues.settings import KaiSettings
from scheduler.engine.engine import Engine
from scheduler.engine.questions.kai_queues import (
    AllInKaiQueues,
    InKaiQueue,
    KaiOutlook,
    WhoGivesWay,
)
from scheduler.engine.questions.queues import KaiFigures, StatusesOfKaiQueues

_PREFIX = "kai/"


class KaiScene:
    """KAI's queues, and the pods and groups in them."""

    def __init__(self, engine: Engine, settings: KaiSettings) -> None:
        self._engine, self._settings = engine, settings

    @cached_property
    def queues(self) -> dict[str, KaiFigures]:
        """All queues by name."""
        return {one.defined.name: one for one in self._engine.ask(StatusesOfKaiQueues())}

    @cached_property
    def entities(self) -> list[InKaiQueue]:
        """All that holds something in the queues, then all that waits there, by queue and in its order."""
        return list(self._engine.ask(AllInKaiQueues()))

    def find_queue(self, name: str, *, is_taken: bool) -> KaiFigures | None:
        """Find a queue; ``is_taken``: another system has one of this name, and ``kai/NAME`` is KAI's."""
        wanted = name.removeprefix(_PREFIX)
        return self.queues.get(wanted) if name != wanted or not is_taken else None

    def find_entity(self, name: str) -> InKaiQueue | None:
        """Find a pod or group by namespace and name, or by a name that no other has: what of it waits, if anything does.

        The name of a pod of a group finds the group.
        """
        found = [one for one in self.entities if name in {one.key, one.name}]
        if not found:
            namespace, _, pod = name.rpartition("/")
            found = [
                one
                for one in self.entities
                if pod in one.pods and (not namespace or namespace == one.namespace)
            ]
        if len({one.key for one in found}) != 1:
            return None
        return max(found, key=lambda one: one.is_waiting)

    def find_outlook(self, key: str, most: int) -> KaiOutlook | None:
        """Find who may go for a pod or group that waits."""
        return self._engine.ask(WhoGivesWay(key, most, self._settings.by_common))
