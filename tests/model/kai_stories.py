"""The life of an engine with KAI's queues, to which random things happen, and the log of it."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from scheduler.api import kinds, names
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Evict, Outcome
from scheduler.api.queues import configuration
from scheduler.api.queues.kai_usage import UsageRecord, write_record
from scheduler.api.times import write_time
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.recorded import Recorded
from tests import make

Json = dict[str, Any]
_PARENTS = {"east": "", "west": "", "a": "east", "b": "east", "c": "west"}
_LEAVES = ("a", "b", "c")


class KaiStory:
    """An engine to which random things happen, and the files of its log.

    Attributes:
        outcomes: all decisions that were made.
        pods: the pods that are there, by uid.
        rival: which other scheduler decides for the queues.
    """

    def __init__(self, seed: int, **settings: Any) -> None:
        self.rng = random.Random(seed)
        self.files: list[list[bytes]] = [[]]
        queues = configuration.read_settings({"kai": settings or True})
        self.engine = Recorded(Config(queues=queues), "test", self._write)
        self.now, self._n = 1_800_000_000.0, 0
        self.outcomes: list[Outcome] = []
        self.pods: dict[str, Json] = {}
        self.rival = ""
        self._groups: set[str] = set()
        for i in range(2):
            self._see(make.raw(make.node(name=f"plain{i}", cpu="16", memory="64Gi", gpus=4)))
        node = make.hami_node(name="shared", cards=make.cards(count=4))
        self._see(make.raw(node))
        for name in _PARENTS:
            self._see(self._draw_queue(name))

    def _write(self, line: bytes) -> None:
        self.files[-1].append(line)

    def _draw_queue(self, name: str) -> Json:
        rng = self.rng
        one = {"quota": rng.choice((0, 1, 2, 4)), "limit": rng.choice((-1, -1, 6))}
        free = {"quota": -1, "limit": -1}
        resources = {"gpu": {**one, "overQuotaWeight": rng.choice((0, 1, 2))}, "cpu": free, "memory": free}  # fmt: skip
        spec: Json = {"resources": resources, "priority": rng.choice((100, 100, 50))}
        if _PARENTS[name]:
            spec["parentQueue"] = _PARENTS[name]
        if rng.random() < 0.2:
            spec["reclaimMinRuntime"] = "10m"
        if rng.random() < 0.05:
            spec["priority"] = "high"
        meta: Json = {"name": name, "uid": name, "creationTimestamp": write_time(1_700_000_000)}
        if rng.random() < 0.3:
            meta["annotations"] = {names.KAI_USAGE: self._draw_usage()}
        api = "scheduling.run.ai/v2"
        return {"apiVersion": api, "kind": "Queue", "metadata": meta, "spec": spec}

    def _draw_usage(self) -> str:
        """What another replica has written, or anything."""
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(("", "{}", "[1]", '{"at":1e999}'))
        parts = (rng.random(), rng.random(), rng.random())
        at = self.now + rng.choice((-3600.0, -60.0, 0.0, 600.0))
        return write_record(UsageRecord(at, rng.random(), parts, parts))

    def _see(self, body: Json) -> None:
        group = body.get("apiVersion", "v1").rpartition("/")[0]
        kind = next(one for one in kinds.BY_KIND[body["kind"]] if one.group == group)
        found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
        self.engine.handle(events.Seen(found), self.now)

    def happen(self) -> None:
        """One thing or another, and then a decision that may fail to be carried out."""
        rng = self.rng
        self.now += rng.expovariate(1 / 60)
        what = rng.randrange(14)
        if what < 5:
            self._come()
        elif what < 7 and self.pods:
            self._leave(rng.choice(sorted(self.pods)))
        elif what == 7:
            self._change_queue(rng.choice(sorted(_PARENTS)))
        elif what == 8 and self._groups:
            self._see(self._draw_group(rng.choice(sorted(self._groups)), rng.randint(1, 3)))
        elif what == 9:
            self._change_node()
        elif what == 10 and (self.rival or rng.random() < 0.5):
            self.rival = "" if self.rival else "KAI-Scheduler runs"
            self.engine.handle(events.KaiQueuesHeld(self.rival), self.now)
        elif what >= 12:
            self._share_card()
        outcome = self.engine.decide(self.now, Unlimited())
        self.outcomes.append(outcome)
        for bind in outcome.binds:
            self._carry_out(bind)
        for evict in outcome.evicts:
            self._evict(evict)

    def _change_queue(self, name: str) -> None:
        if self.rng.random() < 0.2:
            self.engine.handle(events.Gone("Queue.scheduling.run.ai", name), self.now)
        else:
            self._see(self._draw_queue(name))

    def _change_node(self) -> None:
        rng = self.rng
        taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        raw = make.raw(make.node(name="plain0", cpu="16", memory="64Gi", gpus=4))
        if rng.random() < 0.5:
            raw["metadata"]["labels"] = {names.GPU_MIB: "40960"}
        raw["spec"] = {**raw.get("spec", {}), "taints": taints if rng.random() < 0.5 else []}
        self._see(raw)

    def _draw_group(self, name: str, least: int) -> Json:
        spec: Json = {"minMember": least}
        if self.rng.random() < 0.8:
            spec["queue"] = self.rng.choice(_LEAVES)
        meta = {"name": name, "namespace": "team", "uid": f"group-{name}"}
        meta["creationTimestamp"] = write_time(self.now)
        api = "scheduling.run.ai/v2alpha2"
        return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}

    def _come(self) -> None:
        rng = self.rng
        self._n += 1
        n, group = 1, ""
        if rng.random() < 0.3:
            n, group = rng.randint(2, 3), f"g{self._n}"
            self._groups.add(group)
            if rng.random() < 0.8:
                self._see(self._draw_group(group, rng.randint(1, n)))
        figures: Json = {"cpu": "1", "memory": "1Gi", "gpu": rng.choice((1, 1, 2))}
        if rng.random() < 0.4:
            figures |= {"gpu": 1, "gpumem_percent": rng.choice((25, 50))}
        labels = {names.KAI_QUEUE: rng.choice((*_LEAVES, *_LEAVES, "nowhere"))}
        scheduler = names.SCHEDULER
        for i in range(n):
            uid = f"p{self._n}-{i}"
            pod = make.pod(
                name=uid,
                namespace="team",
                uid=uid,
                labels={} if rng.random() < 0.1 else labels,
                annotations={names.KAI_GROUP: group} if group else None,
                priority=rng.choice((50, 50, 75, 100)),
                scheduler_name=scheduler,
                **figures,
            )
            pod.metadata.creation_timestamp = write_time(self.now)
            self.pods[uid] = make.raw(pod)
            self._put(uid)

    def _share_card(self) -> None:
        """A pod comes or changes that KAI has placed on a shared card, or one that holds the card for others."""
        rng = self.rng
        node, group = rng.choice(("plain0", "plain1")), rng.choice(("g1", "g2"))
        labels = {names.KAI_CARD_GROUP: group}
        uid = f"reservation-{node}-{group}"
        notes: Json = {}
        figures: Json = {"cpu": "1"}
        if rng.random() < 0.4:
            namespace, figures = names.KAI_RESERVATIONS, {"cpu": "1", "gpu": 1}
        else:
            uid, namespace = f"share-{rng.randrange(6)}", "team"
            notes = rng.choice(
                (
                    {names.KAI_FRACTION: rng.choice(("0.5", "0.3", "NaN"))},
                    {names.KAI_GPU_MEMORY: "20000", names.KAI_SHARED_CARDS: "9"},
                    {},
                )
            )
            labels[names.KAI_QUEUE] = rng.choice(_LEAVES)
            labels[f"{names.KAI_CARD_GROUPS}g2"] = "g2"
            if rng.random() < 0.2:
                del labels[names.KAI_QUEUE]
        before = self.pods.get(uid)
        pod = make.pod(
            name=uid,
            namespace=namespace,
            uid=uid,
            node=before["spec"]["nodeName"] if before else node,
            labels=labels,
            annotations=notes,
            scheduler_name="kai-scheduler",
            **figures,
        )
        pod.metadata.creation_timestamp = write_time(self.now)
        self.pods[uid] = make.raw(pod)
        if before and "deletionTimestamp" in before["metadata"]:
            stamp = before["metadata"]["deletionTimestamp"]
            self.pods[uid]["metadata"]["deletionTimestamp"] = stamp
        self._put(uid)

    def _put(self, uid: str) -> None:
        self._see(self.pods[uid])

    def _leave(self, uid: str) -> None:
        if self.rng.random() < 0.5 and "deletionTimestamp" not in self.pods[uid]["metadata"]:
            self.pods[uid]["metadata"]["deletionTimestamp"] = write_time(self.now)
            self._put(uid)
            return
        del self.pods[uid]
        self.engine.handle(events.Gone("Pod", uid), self.now)

    def _carry_out(self, bind: Bind) -> None:
        luck = self.rng.random()
        if luck < 0.1:
            self.engine.handle(events.BindFailed(bind.uid, "no"), self.now)
            return
        self.engine.handle(events.BindDone(bind.uid), self.now)
        if bind.uid in self.pods and luck < 0.9:
            pod = self.pods[bind.uid]
            pod["spec"]["nodeName"] = bind.node
            pod["status"] = {"phase": "Running", "startTime": write_time(self.now)}
            self._put(bind.uid)

    def _evict(self, evict: Evict) -> None:
        for uid in evict.victims:
            luck = self.rng.random()
            if luck < 0.1:
                self.engine.handle(events.EvictFailed(uid, "no", is_refused=luck < 0.05), self.now)
            elif uid in self.pods and luck < 0.8:
                del self.pods[uid]
                self.engine.handle(events.Gone("Pod", uid), self.now)
