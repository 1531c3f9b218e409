"""A small crowded cluster on virtual time: nodes, pods, a device plugin, operators, and mishaps.

After every change of the server's truth the judge counts what is given away on the node it touches.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from scheduler.api import names
from scheduler.config import Config
from scheduler.engine import rerun
from tests import make
from tests.model.server import Change, Json, Server
from tests.virtual import climate, judge
from tests.virtual.clock import Clock
from tests.virtual.network import Faults, Network
from tests.virtual.replica import Replica

_TRACE_LINES = 120
_PENDING_MAX = 15
_SETTLE_SECONDS = 420.0
_ORPHAN_SECONDS = 40.0
# A replica at rest looks at a few dates ten times a second; this many turns are no rest.
_TURNS_PER_SECOND = 400.0


class OverAllocatedError(AssertionError):
    """Something was given away twice."""


class World:
    """Everything, from one seed.

    Attributes:
        silent: nodes whose device plugin never answers.
        is_calm: faults have stopped.
    """

    def __init__(self, seed: int, given: climate.Climate | None = None) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.trace: deque[str] = deque(maxlen=_TRACE_LINES)
        self.climate = given or climate.of(rng)
        self.clock = Clock(rng)
        self.server = Server()
        self.network = Network(self.clock, self.server, rng, self.climate.calm, self.say)
        self.config = Config(
            lock_timeout_seconds=self.climate.lock_timeout_seconds,
            hami_scheduler_nodes=self.climate.foreign_nodes,
        )
        self.replicas: list[Replica] = []
        # All that there ever were.
        self.recorded: list[Replica] = []
        self.n_bound = 0
        self.silent: set[str] = set()
        self.found: list[str] = []
        self._serial = 0
        self.is_calm = False
        # Few kinds of pods, so that many wait for what one leaves.
        self._kinds = rng.sample(list(climate.SHAPES), self.climate.kinds)
        self.server.create("namespaces", {"metadata": {"name": "default"}})
        for i in range(self.climate.nodes):
            self.server.create("nodes", self._node(f"node-{i}"))
        if given is None and rng.random() < 0.3:
            self.server.create("nodes", make.raw(make.node(name="plain", cpu="3")))
        self.server.on_change += [self._judge, self.changed]
        for _ in range(self.climate.replicas):
            self.start_replica()
        if given is None:
            for _ in range(rng.randrange(3, 8)):
                self.pods_come()

    def say(self, line: str) -> None:
        self.trace.append(f"{self.clock.now - 1000:9.3f} {line}")

    # The run.

    def live(self, seconds: float) -> None:
        """Let things happen."""
        self._keep_on(self._churn, self.climate.churn_seconds)
        self._keep_on(self._machine_turns, 1.0)
        self._keep_on(self._weather_turns, self.climate.storm_seconds)
        self._keep_on(self._mishap, self.climate.mishap_seconds)
        self.run(seconds)

    def settle(self) -> None:
        """Stop the faults, and see that everyone comes to rest with every pod placed or told why.

        Plugins that were silent answer now: a pod that nobody serves holds its node for ever.
        """
        self.say("faults stop")
        self.network.faults = Faults()
        self.is_calm = True
        self.clock.slowness = 0.0
        for replica in self.replicas:
            replica.process.paused_until = 0.0
        self.plugins_answer()
        end = self.clock.now + _SETTLE_SECONDS
        while self.clock.now < end and self._restless():
            self.run(3.0)
        assert not (left := self._restless()), self.report(left)
        # All that was sent lands.
        self.run(max(0.0, self.network.last_arrival - self.clock.now))
        turns = self.clock.turns
        self.run(10.0)
        most = _TURNS_PER_SECOND * 10.0 * len(self.replicas)
        assert self.clock.turns - turns < most, self.report(["somebody spins"])

    def close(self) -> None:
        for replica in self.replicas:
            replica.kill()
        for replica in self.recorded:
            for report in replica.reruns():
                assert report.difference is None, self.report([rerun.write_report(report)])

    def report(self, problems: list[str]) -> str:
        return "\n".join([f"seed {self.seed}", *problems, *self.trace])

    def run(self, seconds: float) -> None:
        self.clock.run(self.clock.now + seconds, lambda: bool(self.found))
        if self.found:
            raise OverAllocatedError(self.report(self.found))
        for replica in list(self.replicas):
            assert not (failures := replica.failures()), self.report(failures)
            if replica.is_stopped():
                self.kill(replica)

    def events_of(self, reason: str) -> list[Json]:
        """The events of a reason from now on, as they come."""
        found: list[Json] = []
        self.server.on_event.append(
            lambda body: found.append(body) if body.get("reason") == reason else None
        )
        return found

    # What is judged.

    def _judge(self, change: Change) -> None:
        self.found += judge.violations(self.server, change)

    def _restless(self) -> list[str]:
        found = [] if any(replica.is_deciding() for replica in self.replicas) else ["nobody leads"]
        return found + judge.restless(self.server, self.config)

    # What happens by itself.

    def _keep_on(self, happen: Callable[[], None], mean_seconds: float) -> None:
        """Let something happen now and then, until the faults stop."""

        def again() -> None:
            if not self.is_calm:
                happen()
                self._keep_on(happen, mean_seconds)

        self.clock.after(self.rng.expovariate(1.0 / mean_seconds), again)

    def _churn(self) -> None:
        if self.rng.random() < 0.9:
            self.pods_come()
        elif pods := self.server.of_kind("pods"):
            self._delete(self.rng.choice(pods)["metadata"]["name"])

    def _mishap(self) -> None:
        weights = self.climate.mishaps
        (name,) = self.rng.choices(list(weights), list(weights.values()))
        happen: Callable[[], None] = getattr(self, name)
        happen()

    def _machine_turns(self) -> None:
        """Now the machine has time for us, now it has not."""
        self.clock.slowness = 0.0 if self.clock.slowness else self.climate.slowness

    def _weather_turns(self) -> None:
        """Faults come in storms: without calm between them the cards would stay empty."""
        is_storm = self.network.faults is self.climate.storm
        self.network.faults = self.climate.calm if is_storm else self.climate.storm
        self.say("calm" if is_storm else "storm")

    def pods_come(self) -> None:
        if (
            sum(not pod["spec"].get("nodeName") for pod in judge.unfinished(self.server))
            >= _PENDING_MAX
        ):
            return
        self.create(
            self.rng.choice(self._kinds),
            count=self.rng.randrange(1, 5),
            priority=self.rng.choice((0, 0, 10)),
        )

    def create(self, kind: str, *, count: int, priority: int = 0, **figures: Any) -> None:
        """Pods of one kind; of a new kind with ``figures``."""
        shape = figures or climate.SHAPES[kind]
        for _ in range(count):
            self._serial += 1
            pod = make.raw(make.pod(name=f"{kind}-{self._serial}", priority=priority, **shape))
            pod["metadata"]["uid"] = f"uid-of-{kind}-{self._serial}"
            pod["metadata"]["creationTimestamp"] = self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
            self.server.create("pods", pod)

    def nothing_happens(self) -> None:
        pass

    def cordons_change(self) -> None:
        name = self.rng.choice(self.server.of_kind("nodes"))["metadata"]["name"]
        card = f"{name}-GPU-0"

        def edit(node: Json) -> None:
            if self.rng.random() < 0.5:
                node["spec"]["unschedulable"] = not node["spec"].get("unschedulable")
            else:
                notes = node["metadata"].setdefault("annotations", {})
                if not notes.pop(names.HAMI_CORDON, ""):
                    notes[names.HAMI_CORDON] = card

        self.server.change("nodes", "", name, edit)

    def watches_break(self) -> None:
        for watch in self.network.watches:
            if watch.is_open and self.rng.random() < 0.5:
                self.rng.choice((watch.tear, watch.close))()

    def history_is_compacted(self) -> None:
        self.say("compaction")
        self.server.compacted = self.server.version
        self.watches_break()

    def replica_is_killed(self) -> None:
        if replica := self._some_replica():
            self.say(f"{replica.name} is killed")
            self.kill(replica)

    def replica_is_stopped(self) -> None:
        if replica := self._some_replica():
            self.say(f"{replica.name} is told to stop")
            replica.stop()

    def replica_is_paused(self) -> None:
        if replica := self._some_replica():
            seconds = self.rng.uniform(0.5, self.climate.pause_seconds)
            self.say(f"{replica.name} is paused for {seconds:.1f} s")
            replica.pause(seconds)

    def node_dies(self, name: str) -> None:
        """A node is deleted; what was bound to it is collected, but not soon."""
        self.say(f"{name} is deleted")
        self.server.delete("nodes", "", name)

        def collect() -> None:
            for pod in self.server.of_kind("pods"):
                if pod["spec"].get("nodeName") == name:
                    self.server.delete("pods", "default", pod["metadata"]["name"])

        self.clock.after(_ORPHAN_SECONDS, collect)

    def leader(self) -> Replica | None:
        """The replica that the lease names, or the only one."""
        if not self.climate.has_lease:
            return self.replicas[0]
        lease = self.server.find("leases", "evenkeel", "evenkeel")
        holder = lease["spec"]["holderIdentity"] if lease else ""
        return next((replica for replica in self.replicas if replica.name == holder), None)

    def _some_replica(self) -> Replica | None:
        """Rather the one that leads."""
        leader = self.leader()
        if leader is not None and self.rng.random() < 0.7:
            return leader
        return self.rng.choice(self.replicas) if self.replicas else None

    def start_replica(self) -> None:
        if len(self.replicas) < self.climate.replicas:
            self._serial += 1
            name = f"replica-{self._serial}"
            replica = Replica(self.network, self.config, name, has_lease=self.climate.has_lease)
            self.say(f"{replica.name} starts")
            self.replicas.append(replica)
            self.recorded.append(replica)

    def kill(self, replica: Replica) -> None:
        """A replica is gone; its deployment starts another."""
        replica.kill()
        self.say(f"{replica.name} is gone")
        if replica in self.replicas:
            self.replicas.remove(replica)
        self.clock.after(self.rng.uniform(0.0, 2.0), self.start_replica)

    # What nodes and their plugins do.

    def changed(self, change: Change) -> None:
        """The kubelet's and the plugin's part, when a pod got a node or is told to end."""
        pod, before = change.after, change.before
        if change.kind != "pods" or pod is None or before is None:
            return
        name = pod["metadata"]["name"]
        if pod["metadata"].get("deletionTimestamp") and not before["metadata"].get(
            "deletionTimestamp"
        ):
            self.clock.after(
                self.rng.uniform(0.0, 5.0), lambda: self.server.delete("pods", "default", name)
            )
        if before["spec"].get("nodeName") or not pod["spec"].get("nodeName"):
            return
        self.n_bound += 1
        node = pod["spec"]["nodeName"]
        self.say(f"{name} is bound to {node}")
        self.clock.after(
            self.rng.expovariate(1.0 / self.climate.life_seconds), lambda: self._ends(name)
        )
        if names.HAMI_NODE not in (pod["metadata"].get("annotations") or {}):
            self.clock.after(self.rng.uniform(0.0, 2.0), lambda: self._phase(name, "Running"))
            return
        fate = self.rng.random()
        answers, fails = (1.0, 0.0) if self.is_calm else self.climate.plugin
        if fate >= answers + fails or node in self.silent:
            self.say(f"the plugin of {node} never answers {name}")
            return
        ok = fate < answers
        self.clock.after(
            self.rng.expovariate(1.0 / self.climate.plugin_seconds),
            lambda: self._allocated(name, node, ok=ok),
        )

    def _allocated(self, name: str, node: str, *, ok: bool) -> None:
        phase = names.BIND_SUCCESS if ok else names.BIND_FAILED

        def answer(pod: Json) -> None:
            pod["metadata"]["annotations"][names.HAMI_BIND_PHASE] = phase

        def release(body: Json) -> None:
            notes = body["metadata"]["annotations"]
            if notes.get(names.HAMI_LOCK, "").endswith(f",default,{name}"):
                del notes[names.HAMI_LOCK]

        self.server.change("pods", "default", name, answer)
        self.clock.after(
            self.rng.expovariate(20.0), lambda: self.server.change("nodes", "", node, release)
        )
        self._phase(name, "Running" if ok else "Failed")

    def plugins_answer(self) -> None:
        """Plugins wake up, and serve the pods that they have left unserved."""
        self.silent.clear()
        for pod in self.server.of_kind("pods"):
            node = pod["spec"].get("nodeName", "")
            if judge.is_unserved(pod) and self.server.find("nodes", "", node) is not None:
                self._allocated(pod["metadata"]["name"], node, ok=True)

    def _phase(self, name: str, phase: str) -> None:
        def edit(pod: Json) -> None:
            if pod["status"].get("phase") in judge.OVER:
                return
            pod["status"]["phase"] = phase
            if phase == "Running":
                conditions = pod["status"].get("conditions") or []
                initialized = {"type": "Initialized", "status": "True"}
                pod["status"]["conditions"] = [*conditions, initialized]

        self.server.change("pods", "default", name, edit)

    def _ends(self, name: str) -> None:
        if self.is_calm:
            return
        if self.rng.random() < 0.5:
            self._phase(name, "Succeeded")
        else:
            self._delete(name)

    def _delete(self, name: str) -> None:
        """At once, or with a grace period."""

        def edit(pod: Json) -> None:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        self.say(f"{name} is deleted")
        if self.rng.random() < 0.5:
            self.server.delete("pods", "default", name)
        else:
            self.server.change("pods", "default", name, edit)

    def _node(self, name: str) -> Json:
        cards = [
            make.card(uuid=f"{name}-GPU-{i}", index=i, sharers=self.rng.choice((1, 1, 2, 10)))
            for i in range(self.rng.choice((2, 2, 3)))
        ]
        return make.raw(make.hami_node(name=name, cards=cards, cpu=3))
