"""The cluster: events change the arrays here and nowhere else.

A pod's life is ``pending → assumed → bound → gone``:

    see_pod (no node) ─▶ PENDING ─ assume ─▶ ASSUMED ─ see_pod (node set) ─▶ BOUND ─ drop_pod ─▶ (gone)
                            ▲                   │
                            └───── forget ──────┘

Every event carries a whole object, never a delta, so applying an event twice changes nothing. An
assumption has no timer: it ends with the bind's result or with what the watch says. Pods may be
seen before their node and outlive it; until the node is there, their charges wait under its name.

A pod with a node holds on cards what its claim says, as far as its own requests allow: see ``told_cards``.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence

from msgspec.structs import replace

from scheduler.api import names, wire
from scheduler.api.cards import Grants
from scheduler.api.claims.answers import Allotment
from scheduler.api.groups.settings import GroupSettings
from scheduler.api.limits import DEFAULT, PodLimits
from scheduler.api.pods import volumes
from scheduler.api.storage import Given
from scheduler.devices.table import Devices, make_devices
from scheduler.errors import BrokenInvariant, Mistake
from scheduler.schema import columns as c
from scheduler.state import facts
from scheduler.state.budgets.budgets import Budgets
from scheduler.state.cards import CardTable
from scheduler.state.charging.roster import Roster
from scheduler.state.claims.store import Claims
from scheduler.state.counting.peers import Peers
from scheduler.state.counting.terms import Terms
from scheduler.state.demand import Demand
from scheduler.state.ends import Ends
from scheduler.state.groups.registry import Groups
from scheduler.state.later import Later
from scheduler.state.nodes import NodeFacts, NodeTable
from scheduler.state.nominating import follow_nomination
from scheduler.state.nominations import Nominations
from scheduler.state.pods import Life, PodRecord, is_alike_for_group, make_charge_key
from scheduler.state.pools import PoolTable
from scheduler.state.records import Records, read_start
from scheduler.state.registers import Registers
from scheduler.state.seniority import Seniority
from scheduler.state.shared_pools import SharedPools
from scheduler.state.stand_ins import StandIns
from scheduler.state.structures.changes import Changes
from scheduler.state.structures.lots import Lots
from scheduler.state.told_cards_problems import find_claim_problem
from scheduler.state.trials import Beside, Trial
from scheduler.state.volumes.store import Storage

_NO_SETTINGS = GroupSettings()
_BY_AGE = Seniority()
_FINISHED = frozenset({"Succeeded", "Failed"})
Figures = tuple[int, int, int]


class Cluster:
    """Nodes, cards and pods, and what changed since a reader last looked.

    Attributes:
        pods: all pods that are not finished, by uid.
        pods_on: the pods that have a node, by the node's name; the node may be unknown.
        roster: keeps both, and the charges of the pods.
        ledger: what each pod is charged.
        terms: counts of pods for rules about other pods.
        shared: the pools of devices that belong to no single node.
        peers: the objects that select pods which belong together.
        storage: volume claims, volumes, and which are used on which node.
        claims: ResourceClaims, and the devices of ResourceSlices.
        moved: rows of nodes whose free resources may have changed.
        described: rows of nodes whose labels, taints or cards may have changed (also in ``moved``).
        shaped: counts changes of what the demand is compared with: what nodes have, and which pods they accept.
        demand: what the pods seen so far ask.
        nominations: the pods that wait for promised room, and the pods that go to make this room.
        lots: the numbers of decisions that are drawn by lot.
        budgets: how many more of the pods that they cover may go.
        groups: which pods are decided about as one.
        ends: when pods on nodes will have ended.
        later: the room that is promised to a group for a later time.
        records, stand_ins: how pods are read; pods that do not exist yet, for which workloads hold room.
        pauses: where a long decision may be left for a while.
        now: the time of the last event or decision, in seconds since 1970.
    """

    def __init__(
        self,
        schedulers: tuple[str, ...] = (names.SCHEDULER,),
        devices: Devices | None = None,
        limits: PodLimits = DEFAULT,
        groups: GroupSettings = _NO_SETTINGS,
        seniority: Seniority = _BY_AGE,
        by_kube: Collection[str] = (),
    ) -> None:
        """Know nothing; ``by_kube`` are the schedulers whose pods are placed by kube-scheduler's rules."""
        self.nodes = NodeTable(devices or make_devices(), PoolTable())
        self.cards = CardTable()
        self.registers = Registers(self.nodes, self.cards)
        self.peers = Peers()
        self.moved = Changes()
        self.claims = Claims(self.nodes, self.moved)
        self.roster = Roster(self.nodes, self.cards, self.registers, self.claims)
        self.ledger, self.pauses = self.roster.ledger, self.roster.pauses
        self.pods, self.pods_on = self.roster.pods, self.roster.pods_on
        self.shared = SharedPools(self.nodes, self.cards, self.roster, self.moved)
        self.terms = Terms(self.roster.list_charged)
        self.storage = Storage(self.nodes)
        self.roster.followers += (self.terms, self.storage)
        self.described = Changes()
        self.shaped = 0
        self.demand = Demand(self.nodes.devices)
        self.nominations = Nominations(self._note_promised, self._note_leaving)
        self.lots = Lots()
        self.groups = Groups(
            self.roster,
            groups.topology,
            lambda: self.nominations.going,
            self.nodes.has_label,
            lambda: self.now,
            by_kube,
        )
        self.ends = Ends(self.groups, self.ledger)
        self.later = Later(self.nominations.note_change, seniority.find_place)
        self.now = 0.0
        self.budgets = Budgets(self.roster.list_charged)
        self.roster.followers.append(self.budgets)
        self.records = Records(schedulers, limits, self.nodes, groups.owners)
        self.stand_ins = StandIns(self.roster, self.records, self.claims)
        self._trials: list[Trial] = []

    # Nodes.

    def see_node(self, node: wire.Node) -> NodeFacts:
        """Take over a node that was added or changed, and return its facts."""
        self._refuse_in_trial()
        new = facts.read_facts(node, self.registers.devices)
        old = self.find_facts(new.name)
        return self.take_facts(facts.keep_classes(new, old) if old is not None else new)

    def take_facts(self, new: NodeFacts) -> NodeFacts:
        """Take over the facts of a node, if they have changed, and return them."""
        row = self.nodes.find_row(new.name)
        old = self.nodes.facts[row] if row >= 0 else None
        if old == new:
            return new
        if row < 0:
            row = self.nodes.add(new.name)
            self.storage.add_node(new.name, row)
        elif old is not None and old.labels != new.labels:
            self.storage.labelled.add(row)
        had_signed = self.registers.signed
        keys = self.nodes.label_keys_version
        change = self.nodes.describe(row, new)
        if keys != self.nodes.label_keys_version:
            self.groups.note_label_keys()
        self._move_resources(change.offered, change.withdrawn)
        if is_registered := (
            old is None
            or bool(old.problem) != bool(new.problem)
            or (old.uid, old.devices) != (new.uid, new.devices)
            or self.registers.is_misjudged(row)
        ):
            self._register(row, is_another=old is not None and old.uid != new.uid)
        self.registers.sum_up(row)
        if old is None or old.labels != new.labels:
            self.shared.note_node()
            self.claims.write_node(row)
        self.moved.add(row)
        judged = old and (old.problem, old.by_class) == (new.problem, new.by_class)
        if change.static or is_registered or not judged:
            self.described.add(row)
        # The images of a node change often, and mean nothing for the demand.
        if old is None or old._replace(images=new.images) != new:
            self.shaped += 1
        self._look_again(had_signed, (*change.offered, *change.withdrawn))
        return new

    def find_facts(self, name: str) -> NodeFacts | None:
        """Return what was last read of a node; None when the node is unknown."""
        row = self.nodes.find_row(name)
        return self.nodes.facts[row] if row >= 0 else None

    def drop_node(self, name: str) -> None:
        """Drop a deleted node; its pods stay charged to the name, in case the node comes back."""
        self._refuse_in_trial()
        row = self.nodes.find_row(name)
        if row < 0:
            return
        had_signed = self.registers.signed
        self.claims.doubt_pods(self.pods_on.get(name, {}).values())
        self.roster.charge(self.roster.strike(name), -1)
        self.registers.clear(row)
        self.storage.drop_node(name, row)
        self.claims.clear_node(row)
        keys = self.nodes.label_keys_version
        self._move_resources((), withdrawn := self.nodes.remove(name))
        if keys != self.nodes.label_keys_version:
            self.groups.note_label_keys()
        self._note_changed(row)
        self._look_again(had_signed, withdrawn)

    def close_cards(self, name: str, *, closed: bool) -> None:
        """Close the cards of a node because its device plugin does not answer, or open those that nothing else closes."""
        self._refuse_in_trial()
        if (row := self.nodes.find_row(name)) >= 0:
            self.nodes.silent[row] = closed
            self.registers.cordon(row)
            self._note_changed(row)

    def _note_changed(self, row: int) -> None:
        """Note that a node is another one for filters, scores and the demand."""
        self.moved.add(row)
        self.described.add(row)
        self.shaped += 1

    def _register(self, row: int, *, is_another: bool = False) -> None:
        """Read the cards of a node anew; ``is_another``: it is another node with the same name."""
        pods = self.roster.strike(self.nodes.find_name(row))
        if is_another:
            self.registers.clear(row)
        self.registers.write(row, pods)
        self.roster.charge(pods, row)

    def _look_again(self, had_signed: tuple[bool, ...], moved: Iterable[str]) -> None:
        """Read misjudged nodes anew if the first node with a plugin's marks or with some devices came, or the last one went."""
        for row in self.registers.list_misjudged(had_signed, moved):
            self._register(row)
            self.registers.sum_up(row)
            self._note_changed(row)

    def keep_totals(self, wanted: Iterable[str]) -> None:
        """From now on keep the totals of these resources for each node, even if no node offers them."""
        for total in wanted:
            if self.nodes.resources.find(total) < 0:
                self.nodes.keep(total)
                self.moved.add_many(self.ledger.offer(total))

    def _move_resources(self, offered: Iterable[str], withdrawn: Iterable[str]) -> None:
        for resource in offered:
            self.moved.add_many(self.ledger.offer(resource))
        for resource in withdrawn:
            self.moved.add_many(self.ledger.withdraw(resource))

    # Pods.

    def see_pod(self, pod: wire.Pod, *, listed: bool = False) -> PodRecord | None:
        """Take over a pod that was added or changed, and return its record; None when the pod is finished.

        ``listed``: the pod is in the first list of its stream, so the time of its arrival is unknown.
        """
        self._refuse_in_trial()
        uid = pod.metadata.uid
        old = self.pods.get(uid)
        if pod.status.phase in _FINISHED:
            if uid not in self.groups.successes and (says := self.records.read_success(pod)):
                self.groups.note_success(uid, pod.metadata.name, says)
            self._drop_pod(uid)
            return None
        new = self.records.make_record(pod, old)
        follow_nomination(self.nominations, new, old)
        self.claims.change_pod(old, new)
        if old is None:
            self.demand.note_arrival(new.template, listed=listed)
            self.storage.note_claims(new, 1)
        elif old.life == Life.ASSUMED and not new.node:
            # The bind is under way: the decision stays charged, and the newer record waits for the end of the bind.
            self.roster.meanwhile[uid] = new
            return old
        else:
            self.roster.meanwhile.pop(uid, None)
            if make_charge_key(old) == make_charge_key(new):
                kept = self.roster.replace(new, read_start(pod) if new.node else c.NOT_STARTED)
                if not is_alike_for_group(old, kept):
                    self.groups.note_pod(kept)
                return kept
            self.roster.detach(old)
        kept = self.roster.attach(new, read_start(pod)) if new.node else self.roster.keep(new)
        self.groups.note_pod(kept)
        return kept

    def read_as_if(self, pod: wire.Pod) -> PodRecord:
        """Return the record that a pod with this spec would have; the cluster does not keep it."""
        record = self.records.make_record(pod, self.pods.get(pod.metadata.uid))
        # A pod's record keeps what its spec first said of storage, which cannot be changed; this pod may be another.
        return replace(record, volumes=volumes.read_volumes(pod))

    def drop_pod(self, uid: str) -> None:
        """Drop a pod that was deleted."""
        self._refuse_in_trial()
        self.groups.note_deleted(uid)
        self._drop_pod(uid)

    def _drop_pod(self, uid: str) -> None:
        pod = self.roster.drop(uid)
        self.roster.meanwhile.pop(uid, None)
        self.nominations.forget(uid)
        if pod is None:
            return
        self.claims.doubt_pods([pod])
        self.groups.drop_pod(pod)
        self.storage.note_claims(pod, -1)
        if pod.node:
            self.demand.note_departure(pod.template)
            self.roster.detach(pod)
        self.claims.change_pod(pod, None)

    def _note_promised(self, node: str) -> None:
        """Note that the promised room on a node changed: waiting pods may fit there now."""
        if (row := self.nodes.find_row(node)) >= 0:
            self.moved.add(row)

    def _note_leaving(self, uids: Sequence[str]) -> None:
        self.groups.note_leaving(uids)

    def is_bound_later(self, pod: PodRecord) -> bool:
        """Whether a pod must leave the room free that is promised for a later time."""
        if self.later.room is None:
            return False
        group = self.groups.find_group(pod.uid)
        if group is not None and self.groups.shortages.comes_first(self.groups.find_root(group)):
            return False
        return self.later.binds(pod, self.now, self.ends.find_run_seconds(pod))

    def list_template_ids(self) -> set[int]:
        """Return the identities of the templates of all pods."""
        found = {id(pod.template) for pod in self.pods.values()}
        return found | {id(pod.template) for pod in self.roster.meanwhile.values()}

    def list_missing(self, present: Container[str], scheduler: str) -> list[str]:
        """List the uids of the pods of one stream that are not among ``present``."""
        pods = self.pods.items()
        missing = [uid for uid, pod in pods if pod.profile == scheduler and uid not in present]
        return missing + self.groups.successes.list_missing(present, scheduler)

    def read_held(self, pod: PodRecord) -> dict[int, Figures]:
        """Return the cores, MiB and sharers that a pod holds, by card row; empty when it is not charged to a node."""
        holds = self.ledger.pods.read_held(pod.row).tolist() if pod.row >= 0 else []
        return {d: (cores, mib, n) for d, cores, mib, n, part in holds if part == c.NO_PART}

    def assume(self, uid: str, node: str, claim: Grants, given: tuple[Given, ...] = ()) -> None:
        """Charge a pending pod to a node, ahead of its binding, with what its claims are given there."""
        pod = replace(self.pods[uid], node=node, life=Life.ASSUMED, claim=claim, given=given)
        self.roster.attach(pod, c.NOT_STARTED)

    def assume_charged(
        self,
        uid: str,
        node_row: int,
        claim: Grants,
        row: int,
        given: tuple[Given, ...] = (),
        allotted: tuple[Allotment, ...] = (),
    ) -> str:
        """As ``assume``, of a pod that the placing kernel has entered in a row of the pod table already.

        Returns the name of the node.
        """
        node = self.nodes.find_name(node_row)
        pod = replace(self.pods[uid], node=node, life=Life.ASSUMED, claim=claim, row=row)
        pod = replace(pod, given=given, allotted=allotted) if given or allotted else pod
        self.roster.adopt(pod, node_row)
        return node

    def forget(self, uid: str) -> None:
        """Free what was assumed for a pod whose bind failed; nothing when the watch has seen it bound."""
        pod = self.pods.get(uid)
        if pod is not None and pod.life == Life.ASSUMED:
            self.roster.forget(pod)

    def trial(self, *, is_quiet: bool = False) -> Trial:
        """Begin a trial: see ``state/trials.py``."""
        beside = Beside(self.terms, self.nominations, self.lots, self.moved)
        return Trial(self.roster, self._trials, beside, is_quiet=is_quiet)

    @property
    def is_quiet(self) -> bool:
        """Whether a quiet trial is open: boards stay as they are."""
        return any(trial.is_quiet for trial in self._trials)

    def _refuse_in_trial(self) -> None:
        if self._trials:
            raise BrokenInvariant("an event arrived inside a trial")

    def find_version(self, uid: str) -> str:
        """Return the last ``resourceVersion`` seen of a pod, assumed or not; empty when the pod is unknown."""
        pod = self.roster.meanwhile.get(uid) or self.pods.get(uid)
        return pod.version if pod is not None else ""

    def find_claim_problem(self, pod: PodRecord) -> Mistake | None:
        """Return what a person must mend in a pod's annotations about its cards; None when nothing is wrong."""
        row, cards = self.nodes.find_row(pod.node), self.cards.columns
        return None if row < 0 else find_claim_problem(pod, row, self.registers, cards)
