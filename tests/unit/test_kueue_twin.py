"""The twin of Kueue's admission cycle answers Kueue's own tables as Kueue does.

Of the tables in scheduler_test.go, preemption_test.go and their like these cases are left out:

- What a gate decides that is not at its default: preemption gates of workloads (MultiKueueOrchestratedPreemption),
  pods without partial admission (PartialAdmission), reclaimed pods that count (ReclaimablePods), overlapping victims
  without another look (RecomputeAssignmentUponPreemptionTargetsOverlap), order without priorities or with preemptors
  first (PrioritySortingWithinCohort, PrioritizePreemptorWorkloads).
- Topologies, and "error during admission", where the API server refuses a status.
- "multiple preemptions within cq when fair sharing", whose queues have an empty policy for reclaimWithinCohort: the
  API server makes it Never, and by shares a queue of that policy does not preempt while it borrows.
"""

import math
from pathlib import Path

import pytest

from tests.oracles.kueue import cases
from tests.oracles.kueue.amounts import Amounts
from tests.oracles.kueue.assignments import (
    Assignment,
    Fine,
    FlavorChoice,
    Mode,
    PodSetChoice,
    find_assignment_mode,
    write_message,
)
from tests.oracles.kueue.cases import Case
from tests.oracles.kueue.cycle import run_cycle, run_cycles
from tests.oracles.kueue.flavors import Assigner, assign_flavors
from tests.oracles.kueue.order import Entry, order_entries
from tests.oracles.kueue.preemption import find_targets
from tests.oracles.kueue.shares import find_share, round_share
from tests.oracles.kueue.tree import Node, add_usage, find_available, find_potential
from tests.oracles.kueue.victims import read_settings
from tests.oracles.kueue.workloads import Progress, read_time, read_workload
from tests.oracles.kueue.world import Queue, World, build_world

MODES = {"NoFit": Mode.NO_FIT, "Preempt": Mode.PREEMPT, "Fit": Mode.FIT}
FINE = {"NoCandidates": Fine.NO_CANDIDATES, "Preempt": Fine.PREEMPT, "Reclaim": Fine.RECLAIM}


def load(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.load(kind), ids=lambda case: case.name)


@load("scheduling")
def test_a_cycle_ends_as_kueues_does(case: Case) -> None:
    outcome = run_cycle(case.objects, case.config, case.now)
    assert outcome.admitted == case.expected["admitted"]
    assert outcome.preempted == case.expected["preempted"]
    assert outcome.pending == case.expected["pending"]


@load("cycles")
def test_cycle_after_cycle_ends_as_kueues_do(case: Case) -> None:
    outcomes = run_cycles(case.objects, case.config, case.now, case.fields["limit"])
    moves = [{"admitted": one.admitted, "preempted": one.preempted} for one in outcomes]
    want = case.expected["cycles"]
    assert moves[: len(want)] == want
    assert not any(one["admitted"] or one["preempted"] for one in moves[len(want) :])
    assert outcomes[-1].pending == case.expected["pending"]


def list_usage(world: World) -> dict[str, Amounts]:
    nodes: dict[str, Node] = {**world.queues, **world.cohorts}
    return {name: {fr: n for fr, n in node.usage.items() if n} for name, node in nodes.items()}


@load("targets")
def test_those_go_whom_kueue_preempts(case: Case) -> None:
    world = build_world(case.objects)
    info = read_workload(cases.make_incoming(case.fields), case.fields["incoming"]["queue"])
    assignment = Assignment(Progress([], 0, 0, ""))
    for name, count, flavors in case.fields["assigned"]:
        choices = {k: FlavorChoice(flavor, MODES[mode]) for k, (flavor, mode) in flavors.items()}
        assignment.pod_sets.append(PodSetChoice(name, count, {}, choices))
    before = list_usage(world)
    targets = find_targets(world, read_settings(case.config), read_time(case.now), info, assignment)
    want = {cases.name_key(key): reason for key, reason in case.expected.items()}
    assert {target.info.key: target.reason for target in targets} == want
    assert len(targets) == len(want)
    assert list_usage(world) == before


def read_amounts(nested: dict[str, dict[str, int]] | None) -> Amounts:
    return {(flavor, k): v for flavor, one in (nested or {}).items() for k, v in one.items()}


def make_used_world(case: Case) -> World:
    world = build_world(case.objects)
    for name, nested in (case.fields.get("usage") or {}).items():
        for fr, amount in read_amounts(nested).items():
            add_usage(world.queues[name], fr, amount)
    return world


@load("shares")
def test_nodes_have_the_shares_that_kueue_gives_them(case: Case) -> None:
    world = make_used_world(case)
    beside = read_amounts(case.fields.get("with"))
    for title, want in case.expected.items():
        kind, name = title.split(" ")
        node: Node = world.queues[name] if kind == "queue" else world.cohorts[name]
        share = find_share(node, beside)
        told = (round_share(share), share.resource, share.is_borrowing)
        assert told == (want["share"], want["resource"], want["borrowing"]), title
        quota = read_amounts(want.get("quota"))
        assert node.subtree == quota, title
        usage = {fr: amount for fr, amount in node.usage.items() if amount}
        assert usage == read_amounts(want.get("usage")), title
        assert {fr: find_available(node, fr) for fr in quota} == read_amounts(want.get("available"))
        assert {fr: find_potential(node, fr) for fr in quota} == read_amounts(want.get("potential"))


@load("flavors")
def test_flavors_are_those_that_kueue_chooses(case: Case) -> None:
    world, want = make_used_world(case), case.expected
    queue = world.queues[case.fields["queue"]]
    oracle = {
        (flavor, k): (FINE[fine], far) for flavor, k, fine, far in case.fields.get("oracle", [])
    }

    def ask_oracle(_queue: object, _info: object, fr: tuple[str, str], _n: int) -> tuple[Fine, int]:
        return oracle.get(fr, (Fine.PREEMPT, 0))

    info = read_workload(cases.make_incoming(case.fields), queue.name)
    is_fair = read_settings(case.config).strategies is not None
    found = assign_flavors(Assigner(info, queue, world.flavors, ask_oracle, is_fair))
    assert find_assignment_mode(found) == MODES[want["mode"]]
    assert found.borrowing == want["borrowing"]
    assert found.no_fit_reason == want.get("reason", "")
    assert write_message(found) == want.get("message", "")
    assert found.usage == read_amounts(want["usage"])
    told = {
        one.name: [
            one.count,
            {k: [c.flavor, c.mode, c.borrow, c.tried] for k, c in one.flavors.items()},
        ]
        for one in found.pod_sets
    }
    assert told == {
        name: [count, {k: [c[0], MODES[c[1]], *c[2:]] for k, c in flavors.items()}]
        for name, (count, flavors) in want["pods"].items()
    }


@load("order")
def test_heads_are_looked_at_in_kueues_order(case: Case) -> None:
    entries = []
    for manifest in case.objects:
        if manifest["kind"] != "Workload":
            continue
        info = read_workload(manifest)
        assignment = Assignment(Progress([], 0, 0, ""))
        assignment.borrowing = case.fields["workloads"][manifest["metadata"]["name"]]["borrowing"]
        entries.append(Entry(info, Queue("queue"), assignment))
    ordered = order_entries(entries, read_settings(case.config))
    assert [one.info.manifest["metadata"]["name"] for one in ordered] == case.expected


def test_each_case_has_a_name_of_its_own_and_says_where_it_is_from() -> None:
    for kind in ("scheduling", "cycles", "targets", "shares", "flavors", "order"):
        loaded = cases.load(kind)
        assert len({case.name for case in loaded}) == len(loaded)
        assert len({case.source for case in loaded}) == len(loaded)
        assert all("/" in case.source for case in loaded)
        path = Path(cases.__file__).parent / f"{kind}.yaml"
        assert "Apache-2.0" in path.read_text(encoding="utf-8")[:1000]
    assert math.isinf(read_time(None))
