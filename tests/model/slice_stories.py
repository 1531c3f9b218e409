"""Queues to which jobs come that grow and shrink, and what they must use by what has happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from scheduler.api.door.workload_decisions import ReplaceSlice
from scheduler.api.queues.workloads import Shapes
from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.outcomes import Outcome
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Where
from tests.model.tenants import make_tenants, put_object, run_one_cycle, write_admission
from tests.oracles.kueue import cases
from tests.oracles.kueue.amounts import Amounts
from tests.oracles.kueue.tree import add_all_usage, find_available
from tests.oracles.kueue.workloads import read_time
from tests.oracles.kueue.world import build_world

AT = read_time(cases.NOW)
_QUEUES = ("a", "b")


def finish_replaced(tenants: Tenants) -> dict[str, str]:
    """Finish those whose place others have taken; return by whom."""
    done = {
        one.key: one.by for one in list(tenants.stops.take(AT)) if isinstance(one, ReplaceSlice)
    }
    for key in done:
        tenants.put_workload(replace(tenants.works[key].defined, is_finished=True), AT)
    return done


def carry_out(tenants: Tenants, outcome: Outcome) -> dict[str, str]:
    """Write all that a cycle has decided; victims give their quota back at once. Return whose place was taken by whom."""
    for work, assignment in outcome.admitted:
        write_admission(tenants, work, assignment, AT)
    replaced = finish_replaced(tenants)
    for victim, _ in outcome.preempted:
        work = tenants.works[victim.key]
        gone = replace(work.defined, evicted="Preempted", admission=None, is_admitted=False)
        tenants.put_workload(gone, AT)
    return replaced


def check_usage(tenants: Tenants, objects: Iterable[Mapping[str, Any]]) -> None:
    """Check that each queue and cohort uses what comes of adding up anew what workloads hold."""
    world, forest = build_world(objects), tenants.directory.forest
    for name, queue in world.queues.items():
        for used in forest.list_held(name).values():
            add_all_usage(queue, dict(used))
    for tree in forest.list_trees():
        for i, node in enumerate(tree.nodes):
            fresh = (world.queues if node.is_queue else world.cohorts)[node.name].usage
            used = {fr: int(tree.handle.usage[i, k]) for fr, k in tree.columns.items()}
            assert used == {fr: fresh.get(fr, 0) for fr in used}, node.name


@dataclass
class Told:
    """What the objects say of a workload: what it was given, and that it has ended."""

    queue: str
    old: str = ""
    n_pods: int = 0
    n_given: int = 0
    flavor: str = ""
    has_quota: bool = False
    is_evicted: bool = False
    is_over: bool = False


class SliceStory:
    """Tenants, and beside them a plain list of who has quota by what they have decided and by what was written.

    Attributes:
        told: the workloads that are there, as their objects are.
        assumed: who was given quota that its object does not say yet.
    """

    def __init__(
        self,
        limits: Mapping[str, int],
        flavors: Sequence[str] = ("one", "two"),
        *,
        fair: bool = False,
    ) -> None:
        """``limits``: the cores of each queue, in each flavor."""
        queues = {
            name: {
                "cohort": "all",
                "reclaim": "Any",
                "within": "LowerPriority",
                "quotas": [{flavor: {"cpu": f"{n} borrow 3"} for flavor in flavors}],
            }
            for name, n in limits.items()
        }
        objects = cases.make_objects(
            {"cohorts": {"all": {}}, "queues": queues, "locals": {n: n for n in limits}}
        )
        self._objects = [{"kind": "Namespace", "metadata": {"name": "default"}}, *objects]
        config: dict[str, Any] = {"fairSharing": {}} if fair else {}
        self.tenants, self._shapes = make_tenants(self._objects, config, cases.NOW), Shapes()
        self.told: dict[str, Told] = {}
        self.assumed: dict[str, Assignment] = {}
        # Who has taken whose place, by the key of the old one.
        self._taken: dict[str, str] = {}
        self._n = 0

    def happen(self, what: str, i: int, n: int) -> None:
        """Let something happen to the i-th of those to whom it can happen."""
        actions: dict[str, Callable[[], None]] = {
            "come": lambda: self.come(i % 2, n_pods=n),
            "grow": lambda: self.grow(i, more=n - 1),
            "alter": lambda: self.grow(i, more=-n),
            "decide": self.decide,
            "write": lambda: self.write(i),
            "fail": lambda: self.fail(i),
            "evict": lambda: self.evict(i),
            "release": lambda: self.release(i),
            "shrink": lambda: self.shrink(i, less=n),
            "finish": lambda: self.finish(i),
            "drop": lambda: self.drop(i),
        }
        actions[what]()

    def come(self, queue: int, *, n_pods: int, old: str = "") -> None:
        """Let a workload come, one core a pod, which may name another one whose place it is to take."""
        key, name = f"default/w{self._n}", _QUEUES[queue]
        said: dict[str, Any] = {
            "in": name,
            "pods": {"main": {"count": n_pods, "asks": {"cpu": 1}}},
            "priority": self._n % 2 if not old else self.tenants.works[old].priority,
            "uid": f"u{self._n}",
            "created": self._n,
        }
        made = cases.make_workload(key, said | ({"replaces": old} if old else {}))
        if not old:
            made["metadata"]["annotations"] = {cases.ELASTIC: "true"}
        self._n += 1
        self.told[key] = Told(name, old, n_pods)
        put_object(self.tenants, self._shapes, made, AT)

    def grow(self, i: int, *, more: int) -> None:
        """Let the next slice of a job come."""
        key = self._pick(i, lambda one: not one.is_over)
        if key:
            one = self.told[key]
            self.come(_QUEUES.index(one.queue), n_pods=max(1, one.n_pods + more), old=key)

    def decide(self) -> None:
        """Hold a cycle; victims are told to go."""
        before = {key: self._find_holding(key) for key in self.told}
        outcome = run_one_cycle(self.tenants, cases.NOW)
        for work, assignment in outcome.admitted:
            self.assumed[work.key] = assignment
            old = self.told[work.key].old
            held = before.get(old)
            may_replace = (
                old in self.told and self.told[old].has_quota and not self.told[old].is_evicted
            )
            if held and may_replace and self.tenants.works[old].replaced_by is work:
                self._taken[old] = work.key
                # It never gets another flavor.
                assert {flavor for flavor, _ in assignment.usage} == {flavor for flavor, _ in held}
        for victim, _ in outcome.preempted:
            if victim.key in self.assumed:
                self.tenants.undo_preempt(victim.key)
            else:
                self._evict(victim.key)
        self._check_limits()

    def write(self, i: int) -> None:
        """Write what was decided, and with it that the old slice is over."""
        key = self._pick_assumed(i)
        if not key:
            return
        assignment, one = self.assumed.pop(key), self.told[key]
        given = assignment.sets[0]
        one.n_given, one.flavor = given.n_pods, given.flavors["cpu"].flavor
        one.has_quota, one.is_evicted = True, False
        write_admission(self.tenants, self.tenants.works[key], assignment, AT)
        self._sweep()

    def fail(self, i: int) -> None:
        """Let what was decided not be written."""
        key = self._pick_assumed(i)
        if key:
            del self.assumed[key]
            self._give_back(key)
            self.tenants.undo_admit(key, AT)

    def evict(self, i: int) -> None:
        key = self._pick(i, lambda one: one.has_quota and not one.is_evicted and not one.is_over)
        if key:
            self._evict(key)

    def release(self, i: int) -> None:
        """Let an evicted workload give its quota back."""
        key = self._pick(i, lambda one: one.has_quota and one.is_evicted and not one.is_over)
        if key:
            self.told[key].has_quota = self.told[key].is_evicted = False
            self._put(key, admission=None, is_admitted=False)
            self._sweep()

    def shrink(self, i: int, *, less: int) -> None:
        """Let a workload have fewer pods."""
        key = self._pick(i, lambda one: one.n_pods > less and not one.is_over, but_assumed=True)
        if key:
            self.told[key].n_pods -= less
            sets = self.tenants.works[key].sets
            n_pods = self.told[key].n_pods
            self._put(key, sets=(sets[0]._replace(n_pods=n_pods, least=n_pods),))

    def finish(self, i: int) -> None:
        key = self._pick(i, lambda one: not one.is_over)
        if key:
            self._end(key)
            self.told[key].is_over = True
            self._put(key, is_finished=True)
            self._sweep()

    def drop(self, i: int) -> None:
        key = self._pick(i, lambda _: True)
        if key:
            self._end(key)
            del self.told[key]
            self.tenants.drop_workload(key, AT)
            self._sweep()

    def _end(self, key: str) -> None:
        """Let an object end: what was only decided for it was not written, so nobody has made room for it."""
        if self.assumed.pop(key, None) is not None:
            self._give_back(key)

    def _give_back(self, key: str) -> None:
        for old in [old for old, new in self._taken.items() if new == key]:
            del self._taken[old]

    def _evict(self, key: str) -> None:
        self.told[key].is_evicted = True
        self._put(key, evicted="Preempted")
        self._sweep()

    def _put(self, key: str, **changes: Any) -> None:
        self.tenants.put_workload(replace(self.tenants.works[key].defined, **changes), AT)

    def _sweep(self) -> None:
        """Finish those whose place was taken, as soon as that is sure."""
        for old, new in finish_replaced(self.tenants).items():
            assert new not in self.assumed, (old, new)
            assert self.told[old].has_quota, (old, new)
            self.told[old].is_over = True

    def _pick(self, i: int, may: Callable[[Told], bool], *, but_assumed: bool = False) -> str:
        found = [key for key, one in self.told.items() if may(one)]
        found = [key for key in found if not (but_assumed and key in self.assumed)]
        return found[i % len(found)] if found else ""

    def _pick_assumed(self, i: int) -> str:
        found = list(self.assumed)
        return found[i % len(found)] if found else ""

    def _find_holding(self, key: str) -> Amounts:
        """Find what a workload must hold."""
        one = self.told[key]
        if key in self.assumed:
            return dict(self.assumed[key].usage)
        if not one.has_quota or one.is_over or key in self._taken:
            return {}
        return {(one.flavor, "cpu"): 1000 * min(one.n_pods, one.n_given)}

    def list_used(self) -> dict[str, Amounts]:
        """List what each queue must use: all that its workloads must hold."""
        used: dict[str, Amounts] = {name: {} for name in _QUEUES}
        for key, one in self.told.items():
            for fr, amount in self._find_holding(key).items():
                used[one.queue][fr] = used[one.queue].get(fr, 0) + amount
        return used

    def check(self) -> None:
        """Check that exactly those hold quota who must, that all cohorts use what those below them use, and no slice holds any beside the one that took its place."""
        forest = self.tenants.directory.forest
        held = {key: used for name in _QUEUES for key, used in forest.list_held(name).items()}
        wanted = {key: self._find_holding(key) for key in self.told}
        assert held == {key: used for key, used in wanted.items() if used}
        check_usage(self.tenants, self._objects)
        for work in self.tenants.works.values():
            assert work.replaced_by is None or work.where != Where.HOLDS

    def _check_limits(self) -> None:
        """Check that no queue uses more than it may, by adding all up anew."""
        world = build_world(self._objects)
        for name, used in self.list_used().items():
            add_all_usage(world.queues[name], used)
        for queue in world.queues.values():
            for fr in queue.quotas:
                assert find_available(queue, fr) >= 0, (queue.name, fr)
