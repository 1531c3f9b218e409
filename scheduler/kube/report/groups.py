"""What is reported of groups: one event for a group, a condition on each of its pods, and its object's own condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler.api import names, times
from scheduler.api.door.decisions import GroupResult, Plan
from scheduler.api.door.notes import GroupHeld, HeldByQueue
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.groups.readers import kai, kubernetes
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import KnownPod
from scheduler.engine.questions.waiting import GroupFacts, ObjectsOf
from scheduler.kube import wall_clock
from scheduler.kube.report.reporter import Reporter
from scheduler.telling import group_statuses, groups, sayings
from scheduler.telling.sayings import Saying


class GroupReports:
    """Reports what becomes of groups.

    A condition that an autoscaler reads stands on each pod that waits, because it adds nodes for pods. The event stands
    on the object of the group, or on one pod if there is no object.
    """

    def __init__(self, engine: Engine, reporter: Reporter, is_leading: Callable[[], bool]) -> None:
        self._engine, self._reporter, self._is_leading = engine, reporter, is_leading
        # By the uid of the pod that stood for a group in a report: the uid of the group's object.
        self._objects: dict[str, str] = {}
        # By the uid of an object of another system: the message in its status.
        self._messages: dict[str, str] = {}

    def report_plan(self, plan: Plan) -> Iterator[None]:
        """Report the result for a group, piece by piece."""
        result = plan.group
        if result is None:
            return
        if result.leaves:
            yield from self._report_as_kube(result)
            return
        if plan.binds:
            self._set_condition(result.group, "True", "Scheduled", "")
            self._set_status(result, "")
        if plan.hold is None:
            return
        saying = groups.say_group(result, plan.hold)
        placed = {bind.uid for bind in plan.binds}
        waiting = [uid for uid in result.waiting if uid not in placed]
        has_object = bool(self._find_facts(result.group))
        for i, uid in enumerate(waiting):
            yield
            pod = self._engine.ask(KnownPod(uid))
            if pod is not None:
                with_event = i == 0 and not has_object
                self._reporter.report_unschedulable(pod, saying, with_event=with_event)
        if has_object:
            self._report_event(result.group, plan.hold.uid, saying)
        if not plan.binds:
            self._set_condition(result.group, "False", sayings.UNSCHEDULABLE, saying.message)
            self._set_status(result, saying.message)

    def _report_as_kube(self, result: GroupResult) -> Iterator[None]:
        """Report in kube-scheduler's way: on each member, and nothing but the condition on each PodGroup."""
        for hold in result.members:
            yield
            pod = self._engine.ask(KnownPod(hold.uid))
            if pod is not None:
                self._reporter.report_unschedulable(pod, sayings.say_why(hold))
        facts = {one.name: one for one in self._find_facts(result.group)}
        for leaf in result.leaves:
            if leaf.name not in facts:
                continue
            if leaf.status:
                reason = sayings.ERROR if leaf.is_error else sayings.UNSCHEDULABLE
                self._write_condition(facts[leaf.name], "False", reason, leaf.status)
            else:
                self._write_condition(facts[leaf.name], "True", "Scheduled", "")

    def report_held(self, held: GroupHeld | HeldByQueue) -> None:
        """Report why a group, or a pod, may not be tried. No condition is written on pods: a new node would not help them."""
        if not self._is_leading():
            return
        if isinstance(held, HeldByQueue):
            self._report_held_by_queue(held)
            return
        saying = sayings.say_plain(held.why, sayings.ERROR if held.is_wrong else "")
        self._report_event(held.group, held.uid, saying)
        if held.is_wrong:
            self._set_condition(held.group, "False", sayings.ERROR, saying.message)

    def _report_held_by_queue(self, held: HeldByQueue) -> None:
        saying = sayings.say_plain(held.why, held.reason)
        if held.group is None:
            pod = self._engine.ask(KnownPod(held.uid))
            if pod is not None:
                self._reporter.report_waiting(pod, saying)
            return
        self._report_event(held.group, held.uid, saying)
        for one in self._find_facts(held.group):
            if one.kind == kai.KIND:
                self._messages[one.uid] = saying.message
                now = times.write_time(wall_clock.now().timestamp())
                status = group_statuses.write_kai_condition(held.reason, saying.message, now)
                self._reporter.report_group_status(one, status)

    def forget_pod(self, uid: str) -> None:
        """Forget what was reported on a group when the pod that stood for it is gone or has a node."""
        if (group := self._objects.pop(uid, None)) is not None:
            self._reporter.forget_text(group)
            if self._engine.ask(KnownPod(uid)) is None:
                self._messages.pop(group, None)

    def _report_event(self, group: GroupKey, uid: str, saying: Saying) -> None:
        """Report on the object of a group, or on the pod that stands for it."""
        facts = self._find_facts(group)
        pod = self._engine.ask(KnownPod(uid))
        if facts:
            profile = pod.profile if pod is not None else ""
            self._objects[uid] = facts[0].uid
            self._reporter.report_on_group(facts[0], saying, profile)
        elif pod is not None:
            self._reporter.report_waiting(pod, saying)

    def _set_status(self, result: GroupResult, message: str) -> None:
        """Set the status of the objects of other systems, once for each message; an empty message: the group is placed."""
        for one in self._find_facts(result.group):
            make_status = group_statuses.BY_KIND.get(one.kind)
            before = self._messages.pop(one.uid, None)
            if make_status is None:
                continue
            if message:
                self._messages[one.uid] = message
            # Extra pods that are placed one by one change nothing for the group.
            if before == message if message else before is None and not result.least:
                continue
            now = times.write_time(wall_clock.now().timestamp())
            self._reporter.report_group_status(one, make_status(result, message, now))

    def _set_condition(self, group: GroupKey, status: str, reason: str, message: str) -> None:
        """Set the condition of Kubernetes' PodGroups; a group that was placed once stays so."""
        for one in self._find_facts(group):
            self._write_condition(one, status, reason, message)

    def _write_condition(self, one: GroupFacts, status: str, reason: str, message: str) -> None:
        if one.kind == kubernetes.KIND and not one.was_placed:
            condition = {
                "type": names.POD_GROUP_PLACED,
                "status": status,
                "reason": reason,
                "message": message,
                "observedGeneration": one.generation,
            }
            self._reporter.report_group_condition(one, condition)

    def _find_facts(self, group: GroupKey) -> list[GroupFacts]:
        return list(self._engine.ask(ObjectsOf(group)))
