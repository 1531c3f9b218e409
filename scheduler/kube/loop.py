"""The loop: drain → apply → decide → bind. The only writer of the cluster and of what waits."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator

import structlog

from scheduler import explain, policies
from scheduler.api import events
from scheduler.api.decisions import Bind, Hold
from scheduler.api.reasons import WORDS, Refusal
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.errors import BadInput
from scheduler.kube.binder import Binder
from scheduler.kube.policy_status import PolicyStatus
from scheduler.kube.reporter import Reporter
from scheduler.metrics import Metrics
from scheduler.pending import Pending
from scheduler.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeFacts
from scheduler.state.pods import Life, PodRecord

# Streams and binds get their turn at least this often.
_SLICE_SECONDS = 0.01
_HELP_SECONDS = 0.02
_FLUSH_SECONDS = 30.0
# What waiting pods are told is made anew this often, and never for more pods a second than this.
_EXPLAIN_SECONDS = 5.0
_EXPLAIN_RATE = 100.0
_IDLE_SECONDS = 1.0
_COUNT_SLICE = 500
_LISTS = (events.PodsListed, events.NodesListed)
_log = structlog.get_logger("evenkeel.loop")


class Loop:
    """Ties the rooms together.

    Attributes:
        turned_at: loop time of the last turn, for the liveness probe.
    """

    def __init__(
        self,
        config: Config,
        *,
        is_leading: Callable[[], bool],
        reporter: Reporter,
        metrics: Metrics,
        policy_status: PolicyStatus,
    ) -> None:
        self.config = config
        self.cluster = Cluster(config.scheduler_name, config.hami_node_label)
        self.policies = PolicyBook(config.placement)
        self.pending = Pending(config)
        self.cycle = Cycle(self.cluster, self.policies, config)
        self._is_leading = is_leading
        self._reporter, self._metrics, self._policy_status = reporter, metrics, policy_status
        self._inbox: deque[events.Event] = deque()
        self._lists_waiting = 0
        self._wake = asyncio.Event()
        self._helped_at = 0.0
        self._helped_position = -1
        self._flushed_at = 0.0
        # Work on all that waits, one step at a time: others get their turn between steps.
        self._helping: Iterator[None] = iter(())
        self._explaining: Iterator[None] = iter(())
        self._has_chores = False
        self._explained_at = 0.0
        self._explained_position = -1
        self._has_seen_hami = False
        self.turned_at = 0.0
        self.binder: Binder | None = None

    def put(self, event: events.Event) -> None:
        """Hand in an event; it is applied at the next turn."""
        if isinstance(event, _LISTS):
            self._lists_waiting += 1
        self._inbox.append(event)
        self._wake.set()

    def wake(self) -> None:
        """Something outside the inbox changed, such as leadership."""
        self._wake.set()

    async def run(self) -> None:
        """Turn until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self.turned_at = clock()
            await self._sleep()
            self._apply(clock() + _SLICE_SECONDS)
            # A list not yet applied may hold pods on the very cards about to be given away.
            if self._is_leading() and not self._lists_waiting:
                self._decide(clock() + _SLICE_SECONDS)
            await asyncio.sleep(0)

    async def _sleep(self) -> None:
        """Until there is something to do."""
        if self._inbox or (self._is_leading() and self.pending.has_active and self._has_room()):
            return
        self._wake.clear()
        wait = _IDLE_SECONDS
        # Only who may decide has dates to keep; for others they would be over, and the loop spin.
        if self._is_leading() and self._has_room():
            wait = min(wait, max(0.0, self._due() - asyncio.get_running_loop().time()))
        # Not wait_for: in Python 3.11 it swallows a cancellation that meets the event, and a stop
        # would wait for this task for ever.
        alarm = asyncio.get_running_loop().call_later(wait, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    def _due(self) -> float:
        """Loop time of the next thing to decide that no event will tell of."""
        if self._has_chores:
            return 0.0
        due = self.pending.next_due()
        times = [float("inf") if due is None else due]
        if self.pending.n_parked and self._helped_position != self.cluster.moved.position:
            times.append(self._helped_at + _HELP_SECONDS)
        return min(times)

    def _has_room(self) -> bool:
        # Far ahead of the binder every decision would be older news than need be.
        return self.binder is not None and self.binder.n_queued < 4 * self.config.binds_in_flight

    # Events.

    def _apply(self, until: float) -> None:
        clock = asyncio.get_running_loop().time
        while self._inbox and clock() < until:
            self._apply_one(self._inbox.popleft())

    def _apply_one(self, event: events.Event) -> None:
        match event:
            case events.PodSeen(pod):
                self._saw(self.cluster.see_pod(pod), pod.metadata.uid)
                if self.binder is not None:
                    self.binder.see_pod(pod)
            case events.PodGone(uid):
                self.cluster.pod_gone(uid)
                self._left(uid)
            case events.NodeSeen(node):
                self._check_node(self.cluster.see_node(node))
                if self.binder is not None:
                    self.binder.see_node(node)
            case events.NodeGone(name):
                self.cluster.node_gone(name)
                if self.binder is not None:
                    self.binder.node_gone(name)
            case events.BindDone(uid) | events.BindFailed(uid):
                self._bound(uid, event)
            case events.PodsListed() | events.NodesListed():
                self._listed(event)
            case _:
                self._heard(event)

    def _heard(self, event: events.Event) -> None:
        """What comes seldom."""
        if isinstance(event, events.PluginSilent):
            self.cluster.close_cards(event.node, closed=event.silent)
        else:
            self._steer(event)

    def _listed(self, event: events.PodsListed | events.NodesListed) -> None:
        self._lists_waiting -= 1
        if isinstance(event, events.PodsListed):
            self.cluster.relist_pods(event.pods, ours=event.ours)
            self._reconcile()
            if self.binder is not None and event.ours:
                self.binder.reconcile(self.cluster.pods)
                for pod in event.pods:
                    self.binder.see_pod(pod)
            return
        self.cluster.relist_nodes(event.nodes)
        self._check_nodes()
        if self.binder is not None:
            self.binder.reconcile_nodes(self.cluster.nodes.rows)
            for node in event.nodes:
                self.binder.see_node(node)

    def tell_mistakes(self) -> None:
        """As a new leader: what is malformed on nodes and bound pods, told by a predecessor or not."""
        self._check_nodes()
        for pod in self.cluster.pods.values():
            self._check_bound(pod)

    def _saw(self, pod: PodRecord | None, uid: str) -> None:
        if pod is None:
            self._left(uid)
        elif pod.life == Life.ASSUMED:
            return
        elif pod.life == Life.BOUND:
            self._check_bound(pod)
            self.pending.drop(uid)
        elif not pod.ours:
            return
        elif pod.deleting:
            self.pending.drop(uid)
        else:
            self.pending.offer(pod)

    def _left(self, uid: str) -> None:
        self.pending.drop(uid)
        self._reporter.forget(uid)
        if self.binder is not None:
            self.binder.cancel(uid)

    def _reconcile(self) -> None:
        """After a list: what waits must be what the cluster holds."""
        for uid in [pod.uid for pod in self.pending.pods() if pod.uid not in self.cluster.pods]:
            self._left(uid)
        for pod in self.cluster.pods.values():
            self._saw(pod, pod.uid)

    def _check_nodes(self) -> None:
        for facts in self.cluster.nodes.facts:
            if facts is not None:
                self._check_node(facts)

    def _check_node(self, facts: NodeFacts) -> None:
        if facts.register and not self._has_seen_hami:
            self._has_seen_hami = True
            _log.warning(
                "HAMi's device configuration is not read: requests are taken as HAMi's defaults have them",
                node=facts.name,
                taken="gpumem in MiB (memoryFactor 1), default memory and cores 0, resources nvidia.com/*",
            )
        if not facts.problem:
            # Should the same mistake come back, it is news again.
            self._reporter.forget(facts.uid)
        elif self._is_leading():
            self._reporter.malformed_node(facts.name, facts.uid, facts.problem)

    def _check_bound(self, pod: PodRecord) -> None:
        """Of a bound pod, ours or another's, nothing can be malformed but what it tells of its cards."""
        if pod.life != Life.BOUND:
            return
        problem = self.cluster.problem_of(pod)
        if not problem:
            # Should the same mistake come back, it is news again.
            self._reporter.forget(pod.uid)
        elif self._is_leading():
            self._reporter.malformed_pod(
                pod,
                f"{problem}; until it is mended the pod is taken to hold what it asks on the first "
                f"cards of node {pod.node}",
            )

    def _bound(self, uid: str, event: events.BindDone | events.BindFailed) -> None:
        pod = self.cluster.pods.get(uid)
        if pod is None:
            self.pending.drop(uid)
            return
        if isinstance(event, events.BindDone):
            self.pending.drop(uid)
            self._reporter.scheduled(pod, pod.node)
            return
        self._metrics.bind_error()
        self.cluster.forget(uid)
        # As it is by now: what changed on the pod while it was under way counts from here on.
        pod = self.cluster.pods[uid]
        if event.gone or pod.life == Life.BOUND or pod.deleting:
            self.pending.drop(uid)
            return
        self.pending.offer(pod)
        self.pending.retry(uid, asyncio.get_running_loop().time())
        if self._is_leading():
            # Who leads no more has nothing to say: the next leader may have bound the pod already.
            self._reporter.unschedulable(
                pod, f"binding failed, trying again: {event.message}", reason="SchedulerError"
            )

    def _steer(self, event: events.Event) -> None:
        match event:
            case events.PolicySeen(body):
                # Writing a policy's status comes back as an event too.
                if not self._see_policy(body):
                    return
            case events.PolicyGone(name):
                self.policies.drop(name)
                self._policy_status.gone(name)
            case events.NamespaceSeen(name, labels):
                if not self.policies.see_namespace(name, labels):
                    return
            case _:
                return
        self.pending.reconsider()

    async def count_governed(self) -> Counter[str]:
        """Pods of ours by the policy that governs them; others get their turn meanwhile."""
        counts: Counter[str] = Counter()
        for i, pod in enumerate(list(self.cluster.pods.values())):
            if pod.ours:
                counts[self.policies.resolve(pod).policy] += 1
            if i % _COUNT_SLICE == 0:
                await asyncio.sleep(0)
        return counts

    def objection(self, bind: Bind) -> str:
        """Why a decision may no longer be carried out, empty when it may.

        A decision can wait for minutes before the device plugin of its node; the node and its cards
        may be gone by then, or closed to the pod.
        """
        uuids = {use.uuid for slot in bind.slots for use in slot}
        if not self.cluster.has_cards(bind.node, uuids):
            return f"node {bind.node} or a card on it is gone or over-full"
        pod = self.cluster.pods.get(bind.uid)
        refusal = self.cycle.refusal(pod, bind.node) if pod and bind.slots else Refusal.NONE
        return f"{bind.node}: {WORDS[refusal]}" if refusal else ""

    def _see_policy(self, body: dict[str, object]) -> bool:
        metadata = body["metadata"]
        name, generation = str(metadata["name"]), int(metadata.get("generation", 0))  # type: ignore[index,attr-defined]
        try:
            changed = self.policies.put(policies.parse(body))
        except BadInput as error:
            self._policy_status.judged(name, generation, str(error))
            return self.policies.drop(name)
        self._policy_status.judged(name, generation, "")
        return changed

    # Decisions.

    def _decide(self, until: float) -> None:
        clock = asyncio.get_running_loop().time
        now = clock()
        if now - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now
            self.pending.flush(now)
        self._do_chores(now, now + (until - now) / 2)
        while now < until and self._has_room():
            batch = self.pending.pop(self.config.slice_pods, now)
            if not batch:
                break
            self.cycle.learn()
            outcome = self.cycle.schedule(batch)
            for bind in outcome.binds:
                # What was said of the pod no longer holds, and must not land behind its binding.
                self._reporter.forget(bind.uid)
                if self.binder is not None:
                    self.binder.submit(bind, self.cluster.pods[bind.uid])
            for hold in outcome.holds:
                self._hold(hold, now)
            began, now = now, clock()
            self._metrics.decided(len(outcome.binds), len(outcome.holds), now - began)

    def _do_chores(self, now: float, until: float) -> None:
        """Look after the pods that wait for a change, as far as the time goes."""
        clock, position = asyncio.get_running_loop().time, self.cluster.moved.position
        if not self._has_chores and self.pending.n_parked:
            if self._helped_position != position and now - self._helped_at >= _HELP_SECONDS:
                self._helped_position, self._helped_at = position, now
                self._helping = self._help(now)
            rest = max(_EXPLAIN_SECONDS, self.pending.n_parked / _EXPLAIN_RATE)
            if self._explained_position != position and now - self._explained_at >= rest:
                self._explained_position, self._explained_at = position, now
                self._explaining = self._explain_again()
        self._has_chores = True
        for chore in (self._helping, self._explaining):
            for _ in chore:
                if clock() >= until:
                    return
        self._has_chores = False

    def _help(self, now: float) -> Iterator[None]:
        """Move the pods that a change could help; one question per kind."""
        for kind in self.pending.kinds():
            alike = self.pending.alike(kind)
            if alike and self.cycle.could_place(alike[0]):
                self.pending.helped(kind, now)
            yield

    def _explain_again(self) -> Iterator[None]:
        """A change that did not help may still have changed why: no pod shall read old news."""
        for kind in self.pending.kinds():
            alike = self.pending.alike(kind)
            hold = self.cycle.why_not(alike[0]) if alike else None
            text = explain.sentence(hold) if hold else ""
            for pod in alike if text else ():
                if self.pending.is_parked(pod.uid):
                    self._reporter.unschedulable(pod, text)
                yield
            yield

    def _hold(self, hold: Hold, now: float) -> None:
        pod = self.cluster.pods[hold.uid]
        self.pending.failed(hold.uid, now, self.cycle.kind_of(pod))
        self._reporter.unschedulable(pod, explain.sentence(hold))
