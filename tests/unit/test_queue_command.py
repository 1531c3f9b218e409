"""``evenkeel queue``: what it shows of queues and of workloads that wait, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from scheduler import cli
from scheduler.documents import writing
from scheduler.queues import report
from tests.docs import examples
from tests.screen import Screen
from tests.unit.test_queue_outlooks import give
from tests.unit.test_queues_places import make_flavor, make_queue, make_workload

Json = dict[str, Any]
EXAMPLE = examples.read("queues.yaml")
KAI = examples.read("kai-queues.yaml")
FLAVOR = make_flavor("gpus", "gpu")


def queue(*arguments: str, objects: list[Json], code: int = 0) -> str:
    stdin = writing.dump_all(objects)
    done = CliRunner().invoke(cli.app, ["queue", *arguments, "-f", "-"], input=stdin)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def ask(*arguments: str, objects: list[Json]) -> Json:
    found: Json = json.loads(queue(*arguments, "-o", "json", objects=objects))
    return found


def test_the_list_has_a_row_for_each_queue_and_for_each_of_its_quotas() -> None:
    lines = queue("list", objects=EXAMPLE).splitlines()
    assert [line.split() for line in lines] == [
        [
            "QUEUE",
            "COHORT",
            "WEIGHT",
            "SHARE",
            "WAITING",
            "PARKED",
            "ASIDE",
            "RESERVING",
            "ADMITTED",
        ],
        ["speech", "research", "1", "0", "1", "0", "0", "1", "1"],
        ["vision", "research", "1", "250", "1", "0", "0", "2", "2"],
        [],
        ["QUEUE", "FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "LENT", "FREE"],
        ["speech", "h100", "nvidia.com/gpu", "8", "4", "0", "4", "0"],
        ["vision", "h100", "nvidia.com/gpu", "8", "12", "4", "0", "0"],
    ]


def test_the_tree_has_queues_below_their_cohorts() -> None:
    cohort = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "research"},
        "spec": {"parentName": "company"},
    }  # fmt: skip
    alone = make_queue("alone", {"h100": 1}, cohortName="")
    lines = queue("tree", objects=[*EXAMPLE, cohort, *alone]).splitlines()
    assert [line.partition("  h100")[0].split("  ")[:3] for line in lines[1:]] == [
        ["alone", "", ""],
        ["company/", "", ""],
        ["", "research/", ""],
        ["", "", "speech"],
        ["", "", "vision"],
    ]


def test_without_queues_it_says_so() -> None:
    for what in ("list", "tree"):
        assert "no queues" in queue(what, objects=[FLAVOR])
    assert "there are no queues" in queue("show", "a", objects=[FLAVOR], code=2)
    assert "there are no workloads" in queue("why", "a/b", objects=[FLAVOR], code=2)


def test_kai_queues_stand_below_the_ones_above_them() -> None:
    found = queue("tree", objects=KAI)
    assert [line.split() for line in found.splitlines()] == [
        ["KAI", "QUEUE", "RESOURCE", "QUOTA", "LIMIT", "WEIGHT", "FAIR", "HELD", "FIXED", "WANTED"],
        ["research", "gpu", "8", "unlimited", "0", "8", "8", "0", "15"],
        ["speech", "gpu", "4", "unlimited", "1", "4", "2", "0", "8"],
        ["vision", "gpu", "4", "unlimited", "1", "4", "6", "0", "7"],
    ]
    assert queue("list", objects=KAI) == found
    both = queue("list", objects=[*KAI, *EXAMPLE])
    assert both == queue("list", objects=EXAMPLE) + "\n" + both[both.index("KAI QUEUE") :]


def test_kai_queues_in_figures() -> None:
    found = ask("list", objects=KAI)["kaiQueues"]
    assert [(one["name"], one["parent"], one["depth"], one["overQuota"]) for one in found] == [
        ("research", None, 0, False), ("speech", "research", 1, False), ("vision", "research", 1, True),
    ]  # fmt: skip
    assert found[1]["uses"][0]["quota"] == "unlimited"
    amounts = {
        "cpu": {"quota": 1500},
        "memory": {"quota": 2000, "limit": -1},
        "gpu": {"quota": 0.5},
    }
    (alone,) = ask("list", objects=[make_kai("alone", resources=amounts)])["kaiQueues"]
    assert [(one["quota"], one["limit"]) for one in alone["uses"]] == [
        ("1500m", "0"), ("2G", "unlimited"), ("0.5", "0"),
    ]  # fmt: skip


def test_kai_queues_that_start_no_pods_say_why() -> None:
    parents = {"lost": "none", "a": "b", "b": "a", "c": "b"}
    objects = [make_kai(name, parentQueue=parent) for name, parent in parents.items()]
    found = queue("list", objects=objects)
    assert "lost starts no pods: a queue above queue lost does not exist" in found
    assert "c starts no pods: the queues above queue c are a cycle, or too many" in found
    names = [one["name"] for one in ask("list", objects=objects)["kaiQueues"]]
    assert sorted(names) == ["a", "b", "c", "lost"]
    wrong = make_kai("wrong", resources={"gpu": {"quota": -2}})
    assert "Queue wrong: spec.resources.gpu.quota: -2" in queue("list", objects=[wrong], code=3)


def make_kai(name: str, **spec: Any) -> Json:
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}  # fmt: skip


def test_an_unknown_name_is_answered_with_those_that_there_are() -> None:
    assert "similar: vision" in queue("show", "visoin", objects=EXAMPLE, code=2)
    said = " ".join(queue("show", "xyz", objects=EXAMPLE, code=2).split())
    assert "there are research, speech, vision" in said
    assert "similar: vision/depth" in queue("why", "depht", objects=EXAMPLE, code=2)
    assert ask("why", "depth", objects=EXAMPLE)["name"] == "depth"


def test_names_are_given_where_they_are_needed_and_nowhere_else() -> None:
    assert "needs the name of a queue" in queue("show", objects=EXAMPLE, code=2)
    assert "needs NAMESPACE/NAME" in queue("why", objects=EXAMPLE, code=2)
    assert "takes no name" in queue("list", "vision", objects=EXAMPLE, code=2)
    assert "--most" in queue("show", "vision", "--most", "-1", objects=EXAMPLE, code=2)


def test_a_queue_that_admits_nobody_says_why() -> None:
    found = queue("list", objects=make_queue("a", {"lost": 4}))
    assert "a is inactive, and admits no workload: FlavorNotFound" in found


def test_a_queue_in_full() -> None:
    found = ask("show", "vision", objects=EXAMPLE)
    (quota,) = found["quotas"]
    assert (quota["nominal"], quota["borrowingLimit"], quota["lendingLimit"]) == ("8", "4", None)
    assert found["policies"]["reclaimWithinCohort"] == "Any"
    assert found["policies"]["namespaceSelector"] == "all namespaces"
    assert [one["name"] for one in found["holders"]] == ["detect", "segment"]
    assert [(one["position"], one["name"]) for one in found["waiters"]] == [(0, "depth")]
    assert found["path"] == ["research"]
    assert ask("show", "cohort/research", objects=EXAMPLE)["children"] == ["speech", "vision"]


def test_not_all_who_wait_are_shown_if_there_are_many() -> None:
    waits = [make_workload(f"w{i}", "a", 1, 9, second=i) for i in range(5)]
    objects = [FLAVOR, *make_queue("a", {"gpus": 2}), *waits]
    found = ask("show", "a", "--most", "2", objects=objects)
    assert ([one["name"] for one in found["waiters"]], found["notShown"]) == (["w0", "w1"], 3)
    assert "and 3 more" in queue("show", "a", "--most", "2", objects=objects)
    assert ask("show", "a", "--most", "0", objects=objects)["notShown"] == 0


def test_why_names_who_borrows_and_who_would_give_back() -> None:
    found = ask("why", "speech/translate", objects=EXAMPLE)
    (flavor,) = found["flavors"]
    (lack,) = flavor["resources"]
    assert (lack["requested"], lack["available"], lack["missing"]) == ("4", "0", "4")
    assert lack["borrowers"] == [{"queue": "vision", "borrowed": "4", "holding": 2}]
    assert [one["name"] for one in found["victims"]] == ["detect"]
    assert [one["name"] for one in flavor["givers"]] == ["detect", "segment"]


@pytest.mark.parametrize(
    ("preemption", "said"),
    [
        ({}, ["withinClusterQueue: Never", "reclaimWithinCohort: Never"]),
        (
            {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"},
            ["none has a lower priority", "no workload of b has a lower priority"],
        ),
    ],
)
def test_why_names_the_policies_by_which_nothing_comes_back(
    preemption: Json, said: list[str]
) -> None:
    found = ask(
        "why",
        "team/waits",
        objects=[
            FLAVOR,
            *make_queue("a", {"gpus": 4}, preemption=preemption),
            *make_queue("b", {"gpus": 4}),
            give(make_workload("own", "a", 1, 2)),
            give(make_workload("borrows", "b", 2, 3, second=1)),
            make_workload("waits", "a", 1, 2, second=2, scheduler="other"),
        ],
    )
    limits = found["flavors"][0]["limits"]
    assert len(limits) == len(said)
    assert all(part in limit for part, limit in zip(said, limits, strict=True))
    assert found["needs"] == ["in flavor gpus: 2 more of nvidia.com/gpu"]


def test_why_names_a_resource_of_which_the_queue_has_no_quota() -> None:
    wants = make_workload("wants", "a", 1, 1, scheduler="other")
    (container,) = wants["spec"]["podSets"][0]["template"]["spec"]["containers"]
    container["resources"]["requests"]["example.com/nic"] = "1"
    found = ask("why", "team/wants", objects=[FLAVOR, *make_queue("a", {"gpus": 4}), wants])
    assert found["reason"] == "NoMatchingFlavor"
    assert found["needs"] == [
        "quota of example.com/nic in its queue, which has none, or no request of it"
    ]


def test_why_says_what_can_never_start_and_who_is_behind_the_first() -> None:
    objects = [
        FLAVOR,
        *make_queue("a", {"gpus": 4}, queueingStrategy="StrictFIFO"),
        make_workload("huge", "a", 1, 9, scheduler="other"),
        make_workload("small", "a", 1, 1, second=1, scheduler="other"),
    ]
    huge = ask("why", "team/huge", objects=objects)
    assert huge["reason"] == "ExceedsMaxQuota"
    assert "at most 4 possible" in huge["needs"][0]
    small = ask("why", "team/small", objects=objects)
    assert (small["state"], small["ahead"]) == ("behind", ["team/huge"])
    assert "StrictFIFO" in small["needs"][0]


def test_decide_gives_quota_first() -> None:
    before, after = (
        ask("list", *more, objects=EXAMPLE)["queues"][0] for more in ([], ["--decide"])
    )
    assert (before["uses"][0]["used"], after["uses"][0]["used"]) == ("4", "8")
    assert ask("why", "speech/translate", "--decide", objects=EXAMPLE)["state"] == "holds"
    assert ask("why", "vision/detect", "--decide", objects=EXAMPLE)["state"] == "waits"


def test_objects_with_mistakes_are_named_and_the_others_are_shown() -> None:
    (bad, local) = make_queue("bad", {"gpus": 1})
    bad["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = -1
    assert "nominalQuota" in queue("list", objects=[*EXAMPLE, bad, local], code=3)


@pytest.mark.parametrize("what", ["list", "tree", "show vision", "show research", "why speech/translate", "why vision/depth"])  # fmt: skip
def test_nothing_is_wider_than_a_terminal_and_a_pipe_has_no_colours(what: str) -> None:
    found = ask(*what.split(), objects=EXAMPLE)
    for width in (80, 40):
        out = Screen()
        report.print_answer(
            found, Console(file=out, force_terminal=True, width=width, color_system=None)
        )
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        assert [one for one in lines if len(one) > width and len(one.split()) > 1] == []
    piped = queue(*what.split(), objects=EXAMPLE)
    assert "\x1b" not in piped
    assert all(len(line) <= 80 for line in piped.splitlines())


def test_a_table_that_is_too_wide_for_a_terminal_has_names_in_lines_of_their_own() -> None:
    name = "a-team-with-a-name-as-long-as-names-of-teams-are-in-large-companies"
    found = ask("list", objects=[FLAVOR, *make_queue(name, {"gpus": 4})])
    out = Screen()
    report.print_answer(found, Console(file=out, force_terminal=True, width=80, color_system=None))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert f"{name}  all" in lines
    assert lines[lines.index(name) + 1].split() == [
        "gpus",
        "nvidia.com/gpu",
        "4",
        "0",
        "0",
        "0",
        "4",
    ]


def test_a_flavor_that_does_not_suit_is_named_with_the_reason_and_needs_nothing() -> None:
    spot = make_flavor("spot", "gpu")
    spot["spec"]["nodeTaints"] = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    objects = [
        FLAVOR, spot, *make_queue("a", {"gpus": 2, "spot": 9}),
        make_workload("waits", "a", 1, 3, scheduler="other"),
    ]  # fmt: skip
    found = ask("why", "team/waits", objects=objects)
    assert [len(one["refusals"]) for one in found["flavors"]] == [0, 1]
    assert found["needs"] == [
        "in flavor gpus: more quota or a smaller request: 3 of nvidia.com/gpu requested, at most 2 possible"
    ]
    assert "does not suit it: untolerated taint" in queue("why", "team/waits", objects=objects)


def test_workloads_that_may_not_be_tried_are_counted_and_named() -> None:
    objects = [
        FLAVOR,
        *make_queue("a", {"gpus": 2}, stopPolicy="Hold"),
        make_workload("w", "a", 1, 1),
    ]
    assert ask("list", objects=objects)["queues"][0]["aside"] == 1
    assert "team/w may not be tried: Suspended" in queue("show", "a", objects=objects)


def test_a_workload_that_leads_to_no_queue_is_named() -> None:
    objects = [FLAVOR, *make_queue("a", {"gpus": 2}), make_workload("w", "lost", 1, 1)]
    assert [one["name"] for one in ask("list", objects=objects)["lost"]] == ["w"]
    for some in (objects, objects[-1:]):
        said = queue("tree", objects=some)
        assert "1 workload without a queue: team/w. The first: LocalQueue lost doesn't" in said


def test_a_long_chain_of_cohorts_is_drawn_and_a_circle_is_named() -> None:
    def make_cohort(name: str, parent: str) -> Json:
        api = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort"}
        return api | {"metadata": {"name": name}, "spec": {"parentName": parent}}

    chain = [make_cohort(f"c{i:04}", f"c{i + 1:04}") for i in range(1100)]
    objects = [FLAVOR, *chain, *make_queue("a", {"gpus": 2}, cohortName="c0000")]
    assert len(ask("tree", objects=objects)["queues"]) == 1102
    circle = [make_cohort("x", "y"), make_cohort("y", "x")]
    objects = [FLAVOR, *circle, *make_queue("a", {"gpus": 2}, cohortName="x")]
    assert "CohortCycle" in queue("tree", objects=objects)


def test_a_workload_is_found_by_its_job_and_one_that_is_not_in_a_cluster_has_no_time() -> None:
    objects = examples.read("queued-jobs.yaml") + examples.read("nodes.yaml")
    for name in ("vision/detect", "detect"):
        found = ask("why", name, objects=objects)
        assert found["name"].startswith("job-detect-")
        assert found["since"] is None
        assert "9999" not in queue("why", name, objects=objects)
    waiters = ask("show", "vision", objects=objects)["waiters"]
    assert [one["since"] for one in waiters] == [None, None]
    assert "there is none" in queue("why", "vision/detec", objects=objects, code=2)


def test_a_local_queue_without_a_queue_is_named_before_anything_waits_in_it() -> None:
    local = {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "dangling", "namespace": "team"}, "spec": {"clusterQueue": "nowhere"},
    }  # fmt: skip
    objects = [FLAVOR, *make_queue("a", {"gpus": 2}), local]
    wanted = [{"namespace": "team", "name": "dangling", "queue": "nowhere"}]
    for what in ("list", "tree"):
        assert ask(what, objects=objects)["astray"] == wanted
        said = "1 local queue leads to no ClusterQueue that is there: team/dangling to nowhere"
        assert said in " ".join(queue(what, objects=objects).split())
    assert ask("list", objects=objects[:-1])["astray"] == []
