"""Queues decide as Kueue does: its own unit tables, in our words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from scheduler.api.queues.definitions import QueueDefinition
from scheduler.kernels import quotas
from scheduler.schema import quotas as q
from scheduler.tenancy.assigning import Assigner
from scheduler.tenancy.assignments import Assignment, Chosen, Mode, SetAssignment, generalize
from scheduler.tenancy.candidates import Asker
from scheduler.tenancy.ordering import Entry, sort_entries
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.trees import Tree
from scheduler.tenancy.victims import Reclaiming
from scheduler.tenancy.works import Where
from tests.model.tenants import make_tenants, make_work, read_settings, run_cycles, run_one_cycle
from tests.oracles.kueue import cases
from tests.oracles.kueue.cases import Case

MODES = {"NoFit": Mode.NO_FIT, "Preempt": Mode.PREEMPT, "Fit": Mode.FIT}
FINE = {"NoCandidates": Mode.NO_CANDIDATES, "Preempt": Mode.PREEMPT, "Reclaim": Mode.RECLAIM}
# The unit in which Kueue counts: the tables count cpu in thousandths.
Json = dict[str, Any]


def load(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.load(kind), ids=lambda case: case.name)


def describe_admitted(admitted: list[Any]) -> Json:
    return {
        work.key: {
            "clusterQueue": work.queue,
            "podSets": {
                one.name: {
                    "count": one.n_pods,
                    "flavors": {name: chosen.flavor for name, chosen in one.flavors.items()},
                }
                for one in assignment.sets
            },
        }
        for work, assignment in admitted
    }


def describe_preempted(preempted: list[Any]) -> Json:
    return {victim.key: {"by": by.key, "reason": str(victim.why)} for victim, by in preempted}


def check_waiting(tenants: Tenants, expected: Json) -> None:
    """Those wait who wait in Kueue, for the same reason.

    What may not even be tried is no head here: it is put aside, and stands in nobody's way, not even in a strict queue.
    """
    found = {}
    for key, work in tenants.works.items():
        if work.where == Where.HOLDS or work.defined.is_finished:
            continue
        reason, message = tenants.find_reason(work)
        if work.where == Where.ASIDE:
            told = expected.get(key)
            if told is not None and told["reason"] is not None:
                assert (reason, message) == (told["reason"], told["message"])
            continue
        where = "parked" if tenants.lines[work.queue].is_parked(work.key) else "queue"
        # Of whom no cycle has looked at, Kueue says how it lost its quota: that is of its object, not of its queue.
        is_told = expected.get(key, {}).get("reason") not in {None, "PendingEvaluation"}
        found[key] = {
            "where": where,
            "reason": reason if is_told else None,
            "message": message if is_told else None,
        }
    aside = {key for key, work in tenants.works.items() if work.where == Where.ASIDE}
    want = {
        key: {"where": told["where"], "reason": None, "message": None}
        if told["reason"] == "PendingEvaluation"
        else told
        for key, told in expected.items()
        if key not in aside
    }
    assert found == want


@load("scheduling")
def test_one_cycle_ends_as_kueues_does(case: Case) -> None:
    tenants = make_tenants(case.objects, case.config, case.now)
    outcome = run_one_cycle(tenants, case.now)
    assert describe_admitted(outcome.admitted) == case.expected["admitted"]
    assert describe_preempted(outcome.preempted) == case.expected["preempted"]
    check_waiting(tenants, case.expected["pending"])


# Cases that end otherwise here, on purpose.
OTHERWISE = {
    # Kueue ignores what a queue says of usage if nobody has configured how it counts; here a default does.
    "without usage counted local queues go by time",
    # Kueue forgets the pods themselves when it looks for victims; here they are counted.
    "victims are not counted in pods, so a preemptor that lacks the pods of two victims waits forever",
}


@load("cycles")
def test_cycle_after_cycle_ends_as_kueues_do(case: Case) -> None:
    tenants = make_tenants(case.objects, case.config, case.now)
    outcomes = run_cycles(tenants, case.now, case.fields["limit"])
    moves = [
        {
            "admitted": describe_admitted(one.admitted),
            "preempted": describe_preempted(one.preempted),
        }
        for one in outcomes
    ]
    # In a cycle in which nothing comes of a queue, Kueue has passed over somebody who may not even be tried.
    moves, want = (
        [one for one in some if one["admitted"] or one["preempted"]]
        for some in (moves, case.expected["cycles"])
    )
    if case.name in OTHERWISE:
        assert moves != want
        return
    assert moves == want
    check_waiting(tenants, case.expected["pending"])


def find_tree(tenants: Tenants, queue: str) -> Tree:
    list(tenants.list_due(0.0))
    tree = tenants.directory.forest.find_tree(queue)
    assert tree is not None
    return tree


@load("targets")
def test_those_go_whom_kueue_preempts(case: Case) -> None:
    tenants = make_tenants(case.objects, case.config, case.now)
    queue = case.fields["incoming"]["queue"]
    work = make_work(cases.make_incoming(case.fields), queue)
    tree = find_tree(tenants, queue)
    assignment = Assignment()
    for name, count, flavors in case.fields["assigned"]:
        pod_set = next(one for one in work.sets if one.name == name)
        asked = {resource: amount * count for resource, amount in pod_set.shape.requests}
        chosen = {k: Chosen(flavor, MODES[mode], 0) for k, (flavor, mode) in flavors.items()}
        for resource in chosen.keys() - asked.keys():
            asked[resource] = count if resource == "pods" else 0
        assignment.add(
            SetAssignment(
                name=name, n_pods=count, flavors=chosen, requests=asked, reasons=[], attempts=[]
            )
        )
    amounts = {column: amount for column, amount in assignment.usage.items() if amount}
    used = tree.handle.usage.copy()
    asker = Asker(work, tenants.find_queue(queue), amounts, assignment.needed)
    victims = Reclaiming(tree, tenants.works, tenants.rules).find_victims(asker)
    want = {cases.name_key(key): reason for key, reason in case.expected.items()}
    assert {one.key: str(one.why) for one in victims} == want
    assert len(victims) == len(want)
    assert np.array_equal(used, tree.handle.usage)


def read_amounts(nested: dict[str, dict[str, int]] | None) -> dict[tuple[str, str], int]:
    return {(flavor, k): v for flavor, one in (nested or {}).items() for k, v in one.items()}


def make_used_tenants(case: Case) -> Tenants:
    """Make tenants whose queues use what a case says, beside what workloads use."""
    tenants = make_tenants(case.objects, case.config, case.now)
    forest = tenants.directory.forest
    for name, nested in (case.fields.get("usage") or {}).items():
        forest.hold(name, f"usage of {name}", read_amounts(nested))
    list(tenants.list_due(0.0))
    return tenants


@load("shares")
def test_nodes_have_the_shares_that_kueue_gives_them(case: Case) -> None:
    tenants = make_used_tenants(case)
    beside = read_amounts(case.fields.get("with"))
    for title, want in case.expected.items():
        kind, name = title.split(" ")
        trees = tenants.directory.forest.list_trees()
        tree, node = next(
            (tree, i)
            for tree in trees
            for i, one in enumerate(tree.nodes)
            if one.name == name and one.is_queue == (kind == "queue")
        )
        handle = tree.handle
        for column, amount in beside.items():
            handle.usage[node, tree.columns[column]] += amount
        share, resource = tree.find_share(node)
        said = np.zeros((1, q.N_SHARE), np.int64)
        quotas.find_shares(handle, np.array([node]), np.zeros(1), said)
        for column, amount in beside.items():
            handle.usage[node, tree.columns[column]] -= amount
        rounded = 2**63 - 1 if math.isinf(share) else math.ceil(share)
        assert (rounded, resource) == (want["share"], want["resource"]), title
        assert bool(said[0, q.SHARE_BORROWS]) == want["borrowing"], title
        for what, table in (
            ("quota", handle.subtree),
            ("usage", handle.usage),
            ("potential", handle.most),
        ):
            for column, amount in read_amounts(want.get(what)).items():
                assert table[node, tree.columns[column]] == amount, (title, what, column)
        for column, amount in read_amounts(want.get("available")).items():
            assert tree.find_available(node, tree.columns[column]) == amount, (title, column)


@load("flavors")
def test_flavors_are_those_that_kueue_chooses(case: Case) -> None:
    tenants = make_used_tenants(case)
    name, want = case.fields["queue"], case.expected
    oracle = {
        (flavor, k): (FINE[fine], far) for flavor, k, fine, far in case.fields.get("oracle", [])
    }
    work = make_work(cases.make_incoming(case.fields), name)
    assigner = Assigner(
        tenants.find_queue(name),
        find_tree(tenants, name),
        tenants.book,
        lambda column, *_: oracle.get(column, (Mode.PREEMPT, 0)),
        is_fair=read_settings(case.config).strategies is not None,
    )
    found = assigner.assign(work.sets, work.counts)
    assert generalize(found.mode) == MODES[want["mode"]]
    assert found.height == want["borrowing"]
    assert found.why.word == want.get("reason", "")
    assert found.describe() == want.get("message", "")
    assert found.usage == read_amounts(want["usage"])
    told = {
        one.name: [
            one.n_pods,
            {k: [c.flavor, generalize(c.mode), c.height, c.tried] for k, c in one.flavors.items()},
        ]
        for one in found.sets
    }
    assert told == {
        name: [count, {k: [c[0], MODES[c[1]], *c[2:]] for k, c in flavors.items()}]
        for name, (count, flavors) in want["pods"].items()
    }


@load("order")
def test_heads_are_dealt_with_in_kueues_order(case: Case) -> None:
    settings, queue = read_settings(case.config), QueueDefinition(name="queue")
    entries = []
    for manifest in case.objects:
        if manifest["kind"] == "Workload":
            name = manifest["metadata"]["name"]
            work = make_work(manifest, "queue", by_eviction=settings.by_eviction)
            height = case.fields["workloads"][name]["borrowing"]
            entries.append(Entry(work, queue, Assignment(height=height)))
    ordered = [one.work.key.partition("/")[2] for one in sort_entries(entries)]
    assert ordered == case.expected
