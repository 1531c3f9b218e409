"""An engine with queues, the operator's own writer, and an API server of which only what they need is there."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec

from scheduler.api import kinds, kueue
from scheduler.api.door import events
from scheduler.api.door.workload_decisions import Admit, Preempt, Queued, QuotaDecision
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues import configuration
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import ChecksToPass
from scheduler.errors import ApiError
from scheduler.kube.queues import conditions
from scheduler.kube.queues.reports import WorkloadReports
from scheduler.kube.queues.shown import ShownWorkloads
from scheduler.kube.queues.writer import Facts, LetRun, QuotaPermit, QuotaWriter, Result
from scheduler.kube.report.metrics.queues import QueueCounts
from tests.make import namespace as make_namespace

Json = dict[str, Any]
BEGAN = 1_800_000_000.0
_PATH = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/"


def merge(into: Json, patch: Json) -> None:
    """Apply a JSON merge patch."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        elif isinstance(value, dict):
            into[key] = {}
            merge(into[key], value)
        else:
            into[key] = value


class QueueShell:
    """Queues whose decisions are carried out at once.

    Attributes:
        engine: decides.
        now: the time.
        counts: what has happened to workloads.
        said: the events, as (name, reason, message).
        n_refused: so many of the next writes are refused as if others had written meanwhile.
    """

    def __init__(self, **settings: Any) -> None:
        """``settings``: as under ``queues`` in the configuration."""
        read = configuration.read_settings({"kueue": True, **settings})
        self.engine, self.now = Engine(Config(queues=read)), BEGAN
        self.said: list[tuple[str, str, str]] = []
        self.n_refused = 0
        self._bodies: dict[str, Json] = {}
        self._changed: list[str] = []
        self._results: list[Result] = []
        self._shown, self.counts = ShownWorkloads(), QueueCounts()
        me: Any = self
        reports = WorkloadReports(
            me,
            self._shown,
            find_kind=lambda: kinds.WORKLOADS,
            clock=lambda: self.now,
            may_write=lambda: True,
            counts=self.counts,
        )
        permit = QuotaPermit(lambda: 1, lambda: True, lambda: self.now, lambda: kinds.WORKLOADS)
        self._writer = QuotaWriter(me, permit, self._shown, reports, self._results.append)
        self.engine.handle(events.Seen(make_namespace("team")), self.now)

    # What the writer needs of an API server, and of a reporter.

    async def send(self, method: str, path: str, body: Json, *, content_type: str) -> bytes:
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        name, _, part = path.removeprefix(_PATH).partition("/")
        found = self._bodies[name]
        meta, wanted = found["metadata"], body.pop("metadata")
        if self.n_refused:
            self.n_refused -= 1
            self.touch(name)
        if wanted["resourceVersion"] != meta["resourceVersion"]:
            raise ApiError(409, "Conflict", "")
        assert wanted["uid"] == meta["uid"]
        assert set(body) == {part or "spec"}
        merge(found, body)
        meta["generation"] += part != "status"
        self.touch(name)
        return msgspec.json.encode(found)

    async def request(self, method: str, path: str) -> bytes:
        assert method == "GET"
        return msgspec.json.encode(self._bodies[path.removeprefix(_PATH)])

    def report_on_object(self, _: Any, meta: Any, words: tuple[str, str, str], **__: Any) -> None:
        self.said.append((meta.name, *words[1:]))

    async def quiet_pod(self, _: str) -> None:
        """Nothing else is being written."""

    # What others do.

    def put(self, body: Json) -> None:
        """Make or replace an object."""
        if body["kind"] == "Workload":
            name = body["metadata"]["name"]
            made = copy.deepcopy(body)
            made["metadata"] |= {"generation": 1, "resourceVersion": "1"}
            made["metadata"].setdefault("creationTimestamp", write_time(self.now))
            made["metadata"]["uid"] = f"uid-{name}"
            made.setdefault("status", {})
            self._bodies[name] = made
            self._see(name)
            return
        kind = next(one for one in BY_KIND[body["kind"]] if one.is_of_queues)
        found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
        self.engine.handle(events.Seen(found), self.now)

    def touch(self, name: str) -> None:
        """Write a workload as it is: its version changes."""
        meta = self._bodies[name]["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self._changed.append(name)

    def patch(self, name: str, **parts: Any) -> None:
        """Change parts of a workload, as another controller or a person does."""
        merge(self._bodies[name], parts)
        self.touch(name)

    def set_condition(self, name: str, kind: str, status: str, reason: str) -> None:
        """Set a condition of a workload as of now."""
        found = self._bodies[name]["status"].get("conditions", [])
        kept = [one for one in found if one["type"] != kind]
        since = write_time(self.now)
        made = {"type": kind, "status": status, "reason": reason, "message": ""}
        self.patch(name, status={"conditions": [*kept, made | {"lastTransitionTime": since}]})

    def end_job(self, name: str) -> None:
        """Release an evicted workload whose job has stopped, as a controller of jobs does."""
        found = self.read(name)
        changing = conditions.Conditions(found.status.conditions or (), 1, self.now)
        evicted = changing.get("Evicted")
        assert evicted is not None
        assert evicted.status == "True"
        is_back = evicted.reason == "Preempted"
        changing.set("Requeued", evicted.reason, evicted.message, is_true=is_back)
        why = "PendingEvaluation", evicted.message
        self.patch(name, status=conditions.take_quota(found.status, changing, why, self.now))

    async def let_run(self, name: str, seconds: float) -> None:
        """Let a workload with quota run after so many seconds: it has passed its checks."""
        self.now += seconds
        queue = self._bodies[name]["status"]["admission"]["clusterQueue"]
        self._writer.submit(LetRun(f"team/{name}", f"uid-{name}", queue), Facts())
        await self._work()

    def read(self, name: str) -> kueue.Workload:
        return msgspec.convert({**self._bodies[name], "kind": "Workload"}, kueue.Workload)

    def get(self, name: str) -> Json:
        """Return a workload as the API server has it."""
        return copy.deepcopy(self._bodies[name])

    def list_conditions(self, name: str) -> dict[str, tuple[str, str]]:
        found = self._bodies[name]["status"].get("conditions", [])
        return {one["type"]: (one["status"], one["reason"]) for one in found}

    def _see(self, name: str) -> None:
        found = self.read(name)
        self._shown.watch(found)
        self.engine.handle(events.Seen(found), self.now)

    # Time.

    async def settle(self, seconds: float = 0.0) -> list[QuotaDecision]:
        """Let so many seconds pass, then decide and carry out until nothing more happens; return the decisions."""
        self.now += seconds
        made: list[QuotaDecision] = []
        for _ in range(20):
            self._tell()
            found = self.engine.decide(self.now, Unlimited()).quotas
            made += found
            for one in found:
                if not isinstance(one, Queued):
                    self._writer.submit(one, self._find_facts(one))
            await self._work()
            if not found and not self._changed and not self._results:
                return made
        raise AssertionError(f"no end: {made[-3:]}")

    def _tell(self) -> None:
        changed, self._changed = dict.fromkeys(self._changed), []
        for name in changed:
            self._see(name)
        for result in self._results:
            self.engine.handle(result, self.now)
        self._results.clear()

    def _find_facts(self, one: QuotaDecision) -> Facts:
        if isinstance(one, Admit):
            flavors = frozenset(name for given in one.sets for _, name in given.flavors)
            return Facts(checks=self.engine.ask(ChecksToPass(one.queue, flavors)))
        return Facts(paths=("/all/q", "/all/q")) if isinstance(one, Preempt) else Facts()

    async def _work(self) -> None:
        task = asyncio.create_task(self._writer.run())
        await self._writer.drain(5.0)
        # What is reported later.
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
