"""The cluster: events change the arrays here and nowhere else.

A pod's life is ``pending → assumed → bound → gone``:

    see_pod (no node) ─▶ PENDING ─ assume ─▶ ASSUMED ─ see_pod (node set) ─▶ BOUND ─ pod_gone ─▶ (gone)
                            ▲                   │
                            └───── forget ──────┘

Every event carries a whole object, never a delta, so applying one twice changes nothing. An
assumption has no timer: it ends with the bind's result or with what the watch says. Pods may be
seen before their node and outlive it; their charges wait by node name.

What a pod with a node holds on cards is its claim as far as its own requests allow: see ``claims``.

On a node of HAMi's ``nvidia.com/gpu`` counts shares, so no whole GPU is ever given away there, least of
all in the moment in which its device plugin has told the kubelet of the shares and nobody of the cards.
A node is HAMi's when the plugin has written on it, now or earlier under the same uid; before that it
looks like it, when it has GPUs and the label of the nodes that the plugin runs on, or more GPUs than a
machine has while the plugin writes on other nodes. Only people with rights on nodes write any of these.
What pods say of themselves is no sign, for whoever creates a pod can say it. So that a start in which a
register is gone gives nothing away under running pods, the label must be right.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from weakref import WeakKeyDictionary

from scheduler.api import gpus, hami, names, templates, wire
from scheduler.api.limits import DEFAULT, PodLimits
from scheduler.schema import columns as c
from scheduler.state import claims, facts
from scheduler.state.cards import CardTable
from scheduler.state.changes import Changes
from scheduler.state.demand import Demand
from scheduler.state.nodes import NodeFacts, NodeTable
from scheduler.state.pods import Life, PodRecord, charged, problem_of
from scheduler.state.records import Records

# The most GPUs that a machine has.
_MACHINE_MAX = 16
_FINISHED = frozenset({"Succeeded", "Failed"})
Charge = tuple[tuple[int, ...], tuple[int, ...]]
Charges = WeakKeyDictionary[templates.PodTemplate, Charge]


class Cluster:
    """Nodes, cards and pods, and what changed since a reader last looked.

    Attributes:
        moved: rows whose free resources may differ.
        described: rows whose labels, taints or cards may differ (also in ``moved``).
        demand: what the pods seen so far ask.
    """

    def __init__(
        self,
        scheduler_name: str = names.SCHEDULER,
        hami_label: str = names.HAMI_NODE_LABEL,
        limits: PodLimits = DEFAULT,
    ) -> None:
        self.scheduler_name = scheduler_name
        self._hami_label = hami_label.partition("=")
        self.nodes = NodeTable()
        self.cards = CardTable()
        self.pods: dict[str, PodRecord] = {}
        self.pods_on: dict[str, dict[str, PodRecord]] = {}
        self.moved = Changes()
        self.described = Changes()
        self.demand = Demand()
        # Of each row its card rows by UUID, in the order of the register, and what left that under pods.
        self._cards_on: dict[int, dict[str, int]] = {}
        self._gone_from: dict[int, claims.Gone] = {}
        self._records = Records(scheduler_name, limits, self.nodes.resources)
        self._charges: Charges = WeakKeyDictionary()
        # Streams of pods, ours and others', that were listed once.
        self._listed: set[bool] = set()
        # What an assumed pod has become while its bind is under way.
        self._meanwhile: dict[str, PodRecord] = {}

    # Nodes.

    def see_node(self, node: wire.Node) -> NodeFacts:
        """A node was added or changed."""
        new = facts.of_node(node)
        row = self.nodes.row_of(new.name)
        if row < 0:
            row = self.nodes.add(new.name)
            old = None
        else:
            old = self.nodes.facts[row]
            if old == new:
                return new
        elsewhere = bool(self.nodes.was_hami.any())
        n_resources = len(self.nodes.resources)
        static = self.nodes.describe(row, new)
        if len(self.nodes.resources) > n_resources:
            self._charge_new_resources(n_resources)
        if (
            old is None
            or bool(old.problem) != bool(new.problem)
            or (old.uid, old.register, old.cordon) != (new.uid, new.register, new.cordon)
            or bool(self.nodes.columns.managed[row]) != self.is_hamis(row)
        ):
            if old is not None and old.uid != new.uid:
                self._forget_cards(row)
            self._register_cards(row, new)
            static = True
        if old is None:
            for pod in self.pods_on.get(new.name, {}).values():
                self._charge(pod, row, 1)
        self._refresh_gpu(row)
        self.moved.add(row)
        if static or old is None or old.problem != new.problem:
            self.described.add(row)
        self._look_again(elsewhere)
        return new

    def facts_of(self, name: str) -> NodeFacts | None:
        """What was last read of a node; None when it is not there."""
        row = self.nodes.row_of(name)
        return self.nodes.facts[row] if row >= 0 else None

    def node_gone(self, name: str) -> None:
        """A node was deleted; its pods stay charged to the name, should it come back."""
        row = self.nodes.row_of(name)
        if row < 0:
            return
        elsewhere = bool(self.nodes.was_hami.any())
        self._forget_cards(row)
        self.nodes.remove(name)
        self.moved.add(row)
        self.described.add(row)
        self._look_again(elsewhere)

    def is_hamis(self, row: int) -> bool:
        """Whether a node is or looks like one of HAMi's: see the module's words."""
        facts = self.nodes.facts[row]
        whole = int(self.nodes.columns.allocatable[c.GPU, row])
        if self.nodes.was_hami[row] or not (facts and whole):
            return bool(self.nodes.was_hami[row])
        key, wants_value, value = self._hami_label
        label = facts.labels.get(key)
        if label is not None and (not wants_value or label == value):
            return True
        return whole > _MACHINE_MAX and bool(self.nodes.was_hami.any())

    def has_cards(self, name: str, uuids: Iterable[str]) -> bool:
        """Whether a node is there and usable, with these cards registered, healthy and not over-full."""
        row = self.nodes.row_of(name)
        if row < 0 or not self.nodes.columns.valid[row]:
            return False
        there = self._cards_on.get(row, {})
        cards = self.cards.columns
        return all(
            d >= 0
            and bool(cards.healthy[d])
            and bool((cards.used[:, d] <= cards.total[:, d]).all())
            for d in (there.get(uuid, -1) for uuid in uuids)
        )

    def close_cards(self, name: str, *, closed: bool) -> None:
        """Give no card of a node away for now: its device plugin does not answer."""
        row, facts = self.nodes.row_of(name), self.facts_of(name)
        if facts is not None:
            self.nodes.silent[row] = closed
            self._cordon_cards(row, facts)
            self.moved.add(row)
            self.described.add(row)

    def problem_of(self, pod: PodRecord) -> str:
        """What a person must mend on a pod, empty when nothing."""
        row = self.nodes.row_of(pod.node)
        cards = self._cards_of(pod, row) if self._cards_on.get(row) else {}
        return problem_of(pod, self.facts_of(pod.node), cards, self.cards.columns)

    # Pods.

    def see_pod(self, pod: wire.Pod, *, listed: bool = False) -> PodRecord | None:
        """A pod was added or changed; its record, None when it is finished.

        ``listed``: it is of the first list of its stream, so nobody saw it come.
        """
        uid = pod.metadata.uid
        old = self.pods.get(uid)
        if pod.status.phase in _FINISHED:
            self.pod_gone(uid)
            return None
        new = self._records.of(pod, old)
        if old is not None:
            if old.life == Life.ASSUMED and not new.node:
                # The bind is under way: what was decided stays charged, what changed waits for it.
                self._meanwhile[uid] = new
                return old
            self._meanwhile.pop(uid, None)
            if charged(old) != charged(new):
                self._detach(old)
                self._attach(new)
            elif new.node:
                self.pods_on[new.node][uid] = new
        else:
            self.demand.arrived(new.template, listed=listed)
            self._attach(new)
        self.pods[uid] = new
        return new

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted or finished."""
        pod = self.pods.pop(uid, None)
        self._meanwhile.pop(uid, None)
        if pod is not None:
            if pod.node:
                self.demand.left(pod.template)
            self._detach(pod)

    def begin_list(self, *, ours: bool) -> bool:
        """A list of a stream's pods is about to be seen; whether it is the stream's first."""
        first = ours not in self._listed
        self._listed.add(ours)
        return first

    def missing(self, present: Container[str], *, ours: bool) -> list[str]:
        """Uids of the pods of one stream that are not among those present."""
        return [u for u, pod in self.pods.items() if pod.ours == ours and u not in present]

    def held(self, pod: PodRecord, row: int) -> dict[int, claims.Figures]:
        """Cores, MiB and slots that a pod on the node of a row holds there, by card row."""
        return claims.charges(pod.claim, pod.asks, self._cards_of(pod, row), self.cards.columns)

    def assume(self, uid: str, node: str, claim: claims.Slots) -> None:
        """Charge a pending pod to a node, ahead of its binding."""
        pod = self.pods[uid]
        pod.node, pod.life, pod.claim = node, Life.ASSUMED, claim
        self._attach(pod)

    def assume_charged(self, uid: str, node: str, claim: claims.Slots) -> None:
        """As ``assume``, where the placing kernel has charged the columns already."""
        pod = self.pods[uid]
        pod.node, pod.life, pod.claim = node, Life.ASSUMED, claim
        self.pods_on.setdefault(node, {})[uid] = pod
        row = self.nodes.row_of(node)
        for port in pod.template.ports:
            self.nodes.ports.change(row, port, 1)

    def forget(self, uid: str) -> None:
        """The bind failed: what was assumed is free again. Nothing when the watch knows better."""
        pod = self.pods.get(uid)
        if pod is not None and pod.life == Life.ASSUMED:
            self._detach(pod)
            pod.node, pod.life, pod.claim = "", Life.PENDING, ()
            self.pods[uid] = self._meanwhile.pop(uid, pod)

    def version_of(self, uid: str) -> str:
        """The last ``resourceVersion`` seen of a pod, assumed or not; empty when it is not known."""
        pod = self._meanwhile.get(uid) or self.pods.get(uid)
        return pod.version if pod is not None else ""

    def charge_of(self, template: templates.PodTemplate) -> Charge:
        """Resource rows and amounts that a pod of the template is charged, the pod itself included.

        What no node offers has the row ``UNKNOWN``, on which nothing fits and nothing is charged.
        """
        charge = self._charges.get(template)
        if charge is None:
            amounts = [(names.PODS, 1), *template.requests.amounts]
            charge = self._charges[template] = (
                tuple(self.nodes.row_asked(resource) for resource, _ in amounts),
                tuple(amount for _, amount in amounts),
            )
        return charge

    # How records are charged.

    def _attach(self, pod: PodRecord) -> None:
        if not pod.node:
            return
        self.pods_on.setdefault(pod.node, {})[pod.uid] = pod
        row = self.nodes.row_of(pod.node)
        if row >= 0:
            self._charge(pod, row, 1)

    def _detach(self, pod: PodRecord) -> None:
        if not pod.node:
            return
        there = self.pods_on[pod.node]
        del there[pod.uid]
        if not there:
            del self.pods_on[pod.node]
        row = self.nodes.row_of(pod.node)
        if row >= 0:
            self._charge(pod, row, -1)

    def _charge(self, pod: PodRecord, row: int, sign: int) -> None:
        resource_rows, amounts = self.charge_of(pod.template)
        nodes = self.nodes.columns
        for r, amount in zip(resource_rows, amounts, strict=True):
            if r != c.UNKNOWN:
                nodes.requested[r, row] += sign * amount
        nodes.nonzero[0, row] += sign * pod.template.requests.nonzero_cpu
        nodes.nonzero[1, row] += sign * pod.template.requests.nonzero_memory
        if pod.template.size >= 0:
            nodes.sizes[pod.template.size, row] += sign
        for port in pod.template.ports:
            self.nodes.ports.change(row, port, sign)
        self._charge_cards(pod, row, sign)
        if not nodes.managed[row]:
            nodes.gpu_used[c.CORES, row] = nodes.requested[c.GPU, row] * gpus.FULL_CORES
        self.moved.add(row)

    def _charge_new_resources(self, first: int) -> None:
        """A node offers what none did: pods that asked for it have not been charged for it yet."""
        self._charges.clear()
        rows = {name: first + i for i, name in enumerate(self.nodes.resources.values[first:])}
        requested = self.nodes.columns.requested
        for node, pods in self.pods_on.items():
            row = self.nodes.row_of(node)
            if row < 0 or not requested[c.PODS, row]:
                continue
            for pod in pods.values():
                for resource, amount in pod.template.requests.amounts:
                    if resource in rows:
                        requested[rows[resource], row] += amount

    def _charge_cards(self, pod: PodRecord, row: int, sign: int) -> None:
        used, gpu_used = self.cards.columns.used, self.nodes.columns.gpu_used
        for d, figures in self.held(pod, row).items():
            for i, figure in enumerate(figures):
                used[i, d] += sign * figure
                gpu_used[i, row] += sign * figure

    # Cards.

    def _cards_of(self, pod: PodRecord, row: int) -> dict[str, int]:
        """The cards that a pod on the node of a row may tell: those that are there, and left under it."""
        there, gone = self._cards_on.get(row, {}), self._gone_from.get(row)
        return there | gone.get(pod.uid, {}) if gone else there

    def _register_cards(self, row: int, new: NodeFacts) -> None:
        # A node that is left out has no cards, whatever was registered before its mistake.
        cards = hami.decode_register(new.register) if new.register and not new.problem else ()
        pods, ids = self.pods_on.get(new.name, {}).values(), {card.id for card in cards}
        held = ((pod.uid, pod.claim, self._cards_of(pod, row)) for pod in pods)
        gone = claims.gone(held, ids, self.cards.columns)
        self._forget_cards(row)
        nodes = self.nodes.columns
        start = self.cards.place(cards)
        nodes.card_start[row], nodes.card_count[row] = start, len(cards)
        # The cards of a node are of one kind but for odd ones, which count as the first.
        nodes.kind[row] = self.cards.kind_of(cards[0]) if cards else 0
        nodes.managed[row] = self.is_hamis(row)
        self._cards_on[row] = {card.id: d for d, card in enumerate(cards, start)}
        self._gone_from[row] = gone
        self._cordon_cards(row, new)
        # Pods that are charged already hold cards that were just made anew. On a new node none is.
        for pod in pods if nodes.requested[c.PODS, row] else ():
            self._charge_cards(pod, row, 1)

    def _look_again(self, elsewhere: bool) -> None:
        """The first node of HAMi's came or the last one went: what other nodes look like may differ."""
        if bool(self.nodes.was_hami.any()) == elsewhere:
            return
        for row in self.nodes.rows.values():
            facts = self.nodes.facts[row]
            if facts and bool(self.nodes.columns.managed[row]) != self.is_hamis(row):
                self._register_cards(row, facts)
                self._refresh_gpu(row)
                self.moved.add(row)
                self.described.add(row)

    def _cordon_cards(self, row: int, facts: NodeFacts) -> None:
        """Close the cards that HAMi's annotation names; all of them while the plugin does not answer."""
        named = {part.strip() for part in facts.cordon.split(",")}
        closed = bool(self.nodes.silent[row])
        start = int(self.nodes.columns.card_start[row])
        for d in range(start, start + int(self.nodes.columns.card_count[row])):
            self.cards.columns.cordoned[d] = closed or self.cards.uuid_of(d) in named

    def _forget_cards(self, row: int) -> None:
        nodes = self.nodes.columns
        start, count = int(nodes.card_start[row]), int(nodes.card_count[row])
        self._cards_on.pop(row, None)
        self._gone_from.pop(row, None)
        self.cards.give_back(start, count)
        nodes.card_count[row] = nodes.kind[row] = 0
        nodes.managed[row] = False
        nodes.gpu_used[:, row] = 0

    def _refresh_gpu(self, row: int) -> None:
        nodes, cards = self.nodes.columns, self.cards.columns
        whole = int(nodes.allocatable[c.GPU, row])
        if nodes.managed[row]:
            start = int(nodes.card_start[row])
            span = slice(start, start + int(nodes.card_count[row]))
            nodes.gpu_total[:, row] = cards.total[:, span].sum(axis=1)
            nodes.gpu_used[:, row] = cards.used[:, span].sum(axis=1)
        else:
            nodes.gpu_total[:, row] = (whole * gpus.FULL_CORES, 0, 0)
            nodes.gpu_used[:, row] = (nodes.requested[c.GPU, row] * gpus.FULL_CORES, 0, 0)
        nodes.has_gpu[row] = nodes.managed[row] or whole > 0
