"""The loop: drain → apply → decide → bind. The only writer of the cluster and of what waits."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator

from scheduler.api import events, wire
from scheduler.api.decisions import Bind, Hold
from scheduler.api.reasons import WORDS, Refusal
from scheduler.config import Config
from scheduler.cycle import explain, policies
from scheduler.cycle.policies import PolicyBook
from scheduler.cycle.schedule import Cycle
from scheduler.errors import BadInput
from scheduler.kube.bind.binder import Binder
from scheduler.kube.chores import Chores
from scheduler.kube.intake import Intake
from scheduler.kube.report.metrics import Metrics
from scheduler.kube.report.mistakes import Mistakes
from scheduler.kube.report.policy_status import PolicyStatus
from scheduler.kube.report.reporter import Reporter
from scheduler.queues.pending import Pending
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord

# Streams and binds get their turn at least this often.
_SLICE_SECONDS = 0.01
# What a batch may cost beyond the usual, in units of about a millisecond per so many nodes.
_DEAR_UNITS, _NODES_A_UNIT = 8, 500
_IDLE_SECONDS = 1.0
_COUNT_SLICE = 500
_LISTS = (events.PodsListed, events.NodesListed)


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
        self.cluster = Cluster(config.scheduler_name, config.hami_node_label, config.pod_limits)
        self.policies = PolicyBook(config.placement)
        self.pending = Pending(config)
        self.cycle = Cycle(self.cluster, self.policies, config)
        self._is_leading = is_leading
        self._reporter, self._metrics, self._policy_status = reporter, metrics, policy_status
        self._inbox: deque[events.Event] = deque()
        self._lists_waiting = 0
        self._wake = asyncio.Event()
        self._intake = Intake()
        # The list that is being applied, one object at a time: others get their turn between.
        self._listing: Iterator[None] = iter(())
        self._chores = Chores(self.cluster, self.cycle, self.pending, reporter)
        self.mistakes = Mistakes(self.cluster, reporter, is_leading)
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

    def finish(self) -> None:
        """After the last turn: what became of binds is still told."""
        for event in self._inbox:
            if isinstance(event, events.BindDone | events.BindFailed):
                self._bound(event.uid, event)

    async def _sleep(self) -> None:
        """Until there is something to do."""
        if self._inbox or len(self._intake) or self._lists_waiting:
            return
        if self._is_leading() and self.pending.has_active and self._has_room():
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
        due = self.pending.next_due()
        return min(self._chores.due(), float("inf") if due is None else due)

    def _has_room(self) -> bool:
        # Far ahead of the binder every decision would be older news than need be.
        return self.binder is not None and self.binder.n_queued < 4 * self.config.binds_in_flight

    # Events.

    def _apply(self, until: float) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < until:
            if self._lists_waiting and next(self._listing, self) is None:
                continue
            if not self._inbox:
                break
            self._apply_one(self._inbox.popleft())
        # What is dear to compile has half a slice of its own, and holds up no news.
        until = clock() + _SLICE_SECONDS / 2
        while len(self._intake) and clock() < until:
            pod, listed = self._intake.next()
            self._saw(self.cluster.see_pod(pod, listed=listed), pod.metadata.uid)

    def _apply_one(self, event: events.Event) -> None:
        match event:
            case events.PodSeen(pod):
                self._pod_seen(pod)
            case events.PodGone(uid):
                self.cluster.pod_gone(uid)
                self._left(uid)
            case events.NodeSeen(node):
                self.mistakes.check_node(self.cluster.see_node(node))
                if self.binder is not None:
                    self.binder.see_node(node)
            case events.NodeGone(name):
                self.cluster.node_gone(name)
                if self.binder is not None:
                    self.binder.node_gone(name)
            case events.BindDone(uid) | events.BindFailed(uid):
                self._bound(uid, event)
            case events.PodsListed() | events.NodesListed():
                self._listing = self._list_steps(event)
            case _:
                self._heard(event)

    def _pod_seen(self, pod: wire.Pod, *, listed: bool = False) -> None:
        listed = listed or self._intake.was_listed(pod.metadata.uid)
        if not self._intake.takes(pod, listed=listed):
            self._saw(self.cluster.see_pod(pod, listed=listed), pod.metadata.uid)
        if self.binder is not None:
            self.binder.see_pod(pod)

    def _heard(self, event: events.Event) -> None:
        """What comes seldom."""
        if isinstance(event, events.PluginSilent):
            self.cluster.close_cards(event.node, closed=event.silent)
            if event.silent:
                self._plugin_silent(event)
        else:
            self._steer(event)

    def _plugin_silent(self, event: events.PluginSilent) -> None:
        node, pod = self.cluster.facts_of(event.node), self.cluster.pods.get(event.waits_for)
        if node is not None:
            whom = f"pod {pod.key}" if pod else "a pod of another scheduler"
            note = f"its device plugin has not served {whom}: until it answers no GPU is given away"
            self._reporter.on_node(node, "DevicePluginSilent", note)

    def _list_steps(self, event: events.PodsListed | events.NodesListed) -> Iterator[None]:
        if isinstance(event, events.PodsListed):
            return self._pods_listed(event.pods, ours=event.ours)
        return self._nodes_listed(event.nodes)

    def _pods_listed(self, pods: list[wire.Pod], *, ours: bool) -> Iterator[None]:
        """All unfinished pods of one stream, one at a time; what is not among them is gone."""
        first = self.cluster.begin_list(ours=ours)
        for pod in pods:
            self._pod_seen(pod, listed=first)
            yield
        present = {pod.metadata.uid for pod in pods}
        for uid in self.cluster.missing(present, ours=ours):
            self.cluster.pod_gone(uid)
            self._left(uid)
            yield
        if ours:
            self._intake.keep(present)
            for uid in [pod.uid for pod in self.pending.pods() if pod.uid not in self.cluster.pods]:
                self._left(uid)
            if self.binder is not None:
                self.binder.reconcile(self.cluster.pods)
        self._lists_waiting -= 1

    def _nodes_listed(self, nodes: list[wire.Node]) -> Iterator[None]:
        """All nodes, one at a time; what is not among them is gone."""
        for node in nodes:
            self.mistakes.check_node(self.cluster.see_node(node))
            if self.binder is not None:
                self.binder.see_node(node)
            yield
        present = {node.metadata.name for node in nodes}
        for name in [name for name in self.cluster.nodes.rows if name not in present]:
            self.cluster.node_gone(name)
            yield
        if self.binder is not None:
            self.binder.reconcile_nodes(self.cluster.nodes.rows)
        self._lists_waiting -= 1

    def _saw(self, pod: PodRecord | None, uid: str) -> None:
        if pod is None:
            self._left(uid)
        elif pod.life == Life.ASSUMED:
            return
        elif pod.life == Life.BOUND:
            self.mistakes.check_bound(pod)
            self.pending.drop(uid)
        elif not pod.ours:
            return
        elif pod.deleting:
            self.pending.drop(uid)
        else:
            self.pending.offer(pod)

    def _left(self, uid: str) -> None:
        self._intake.drop(uid)
        self.pending.drop(uid)
        self._reporter.forget(uid)
        if self.binder is not None:
            self.binder.cancel(uid)

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
        self._chores.work(now, now + (until - now) / 2, clock)
        most_dear = max(1, _DEAR_UNITS // (1 + len(self.cluster.nodes.rows) // _NODES_A_UNIT))
        while now < until and self._has_room():
            batch = self.pending.pop(self.config.slice_pods, now, self.cycle.cost_of, most_dear)
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

    def _hold(self, hold: Hold, now: float) -> None:
        pod = self.cluster.pods[hold.uid]
        self.pending.failed(hold.uid, now, self.cycle.kind_of(pod))
        self._reporter.unschedulable(pod, explain.sentence(hold))
