"""What ``evenkeel explain`` takes for a name: pods, nodes, workloads, how names begin, and what is near."""

from typing import Any

import pytest

from tests.prose import unwrapped
from tests.unit.test_explain import answer, explain
from tests.unit.test_simulate_what_if import node, owned, pod, workload

Json = dict[str, Any]


def of_deployment(name: str, **figures: Any) -> Json:
    """A pod of the ReplicaSet of the Deployment web."""
    body = owned(name, "ReplicaSet", **figures)
    body["metadata"]["ownerReferences"][0]["name"] = "web-5f"
    body["metadata"]["labels"] = {"pod-template-hash": "5f"}
    return body


FINISHED = owned("train-x", "Job", node="a")
FINISHED["metadata"]["ownerReferences"][0]["name"] = "train"
FINISHED["status"] = {"phase": "Succeeded"}
OBJECTS = [
    node("a", cpu=9),
    node("shared-1"),
    of_deployment("web-5f-1", node="a"),
    of_deployment("web-5f-2", cpu=99),
    of_deployment("web-5f-3", node="a"),
    pod("chat-7b-0", namespace="search", node="a"),
    pod("chat-7b-1", namespace="search", node="a"),
    pod("lone-x"),
    FINISHED,
]


@pytest.mark.parametrize(
    ("asked", "explained", "remark"),
    [
        (("deploy", "web"), "web-5f-2", "Deployment default/web has 3 pods, 1 waiting, 2 on nodes; this is the first that waits. The others: default/web-5f-1, default/web-5f-3."),
        (("rs", "default/web-5f"), "web-5f-2", "ReplicaSet default/web-5f has 3 pods, 1 waiting"),
        (("pod", "web"), "web-5f-2", "3 pods have names that begin with default/web, 1 waiting"),
        (("pod", "search/chat-7b"), "chat-7b-0", "2 pods have names that begin with search/chat-7b, 0 waiting, 2 on nodes; this is the first by name. The others: search/chat-7b-1."),
        (("pod", "lone"), "lone-x", ""),
        (("pod", "web-5f-3"), "web-5f-3", ""),
    ],
)  # fmt: skip
def test_one_pod_of_a_workload_or_of_a_beginning_is_explained(
    asked: tuple[str, str], explained: str, remark: str
) -> None:
    result = explain(*asked, objects=OBJECTS)
    assert result.exit_code == 0, result.output
    found = answer("pod", "/".join(_named(explained)), objects=OBJECTS)
    said = " ".join(result.stdout.split())
    assert f"Pod {'/'.join(_named(explained))} " in said
    assert remark in said
    assert not any("The others" in one for one in found["remarks"])


def test_the_first_that_waits_is_the_first_of_the_queue() -> None:
    def waiting(name: str, priority: int, created: str) -> Json:
        body = pod(name, cpu=99)
        body["spec"]["priority"] = priority
        body["metadata"]["creationTimestamp"] = created
        return body

    old, new = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"
    queue = [waiting("web-c", 5, new), waiting("web-b", 0, old), waiting("web-a", 0, new)]
    for i, first in enumerate(("web-c", "web-b", "web-a")):
        result = explain(
            "pod", "web", objects=[node("a"), *reversed(queue[i:]), pod("web-0", node="a")]
        )
        assert f"Pod default/{first} " in result.stdout, result.output


def test_a_workload_without_pods_is_not_said_to_be_missing_but_why_it_has_none() -> None:
    agent, tainted = workload("DaemonSet", "agent"), node("a")
    agent["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    plain = workload("DaemonSet", "plain")
    tainted["spec"]["taints"] = [{"key": "own", "effect": "NoSchedule"}]
    for word, body, why in (
        ("ds", agent, "no node has the label gpu=yes"),
        ("ds", plain, "its nodeSelector, its node affinity or taints keep it off every node"),
        ("deploy", workload("Deployment", "idle", replicas=0), "it requests none (spec.replicas is 0)"),
    ):  # fmt: skip
        result = explain(word, body["metadata"]["name"], objects=[tainted, body])
        assert result.exit_code == 2
        said = " ".join(unwrapped(result.stderr).split())
        assert f"{body['metadata']['name']}: has no pods: {why}" in said


@pytest.mark.parametrize(
    ("word", "name", "said"),
    [("po", "lone-x", "Pod default/lone-x"), ("pods", "lone-x", "Pod default/lone-x"), ("no", "a", "Node a"), ("nodes", "a", "Node a")],
)  # fmt: skip
def test_kubectl_s_words_for_pods_and_nodes_are_known(word: str, name: str, said: str) -> None:
    result = explain(word, name, objects=OBJECTS)
    assert result.exit_code == 0, result.output
    assert said in result.stdout


def _named(name: str) -> tuple[str, str]:
    return "search" if name.startswith("chat") else "default", name


def test_pods_that_a_workload_would_make_are_its_pods() -> None:
    for kind, word in (("Deployment", "deployments"), ("StatefulSet", "sts"), ("Job", "job")):
        body = workload(kind, "mine", replicas=2, parallelism=2)
        result = explain(word, "mine", objects=[node("a"), body])
        assert f"{kind} default/mine has 2 pods" in " ".join(result.stdout.split()), result.output


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("deploy", "wib"), "Deployment default/wib: does not exist. Of 1 Deployment, similar: default/web"),
        (("deploy", "chat"), "Deployment default/chat: does not exist. There is 1 Deployment: default/web. Did you mean pod search/chat-7b-0, pod search/chat-7b-1?"),
        (("deploy/web", "-n", "nlp"), "Deployment nlp/web: does not exist. Of 1 Deployment, similar: default/web"),
        (("deploy/we",), "Deployment default/we: does not exist. Of 1 Deployment, similar: default/web"),
        (("sts", "web"), "StatefulSet default/web: does not exist, and no other StatefulSet does. Did you mean deployment default/web?"),
        (("sts/chat",), "Did you mean pod search/chat-7b-0, pod search/chat-7b-1?"),
        (("pod", "chat-7b-0"), "pod default/chat-7b-0: does not exist. Of 6 pods, similar: search/chat-7b-0"),
        (("pod/chat-7b",), "pod default/chat-7b: does not exist. Of 6 pods, similar: search/chat-7b-0, search/chat-7b-1"),
        (("pod", "search/web"), "Of 6 pods, similar: default/web-5f-1, default/web-5f-2, default/web-5f-3. Did you mean deployment default/web?"),
        (("pod", "wbe"), "pod default/wbe: does not exist. Of 6 pods, similar: pods of Deployment default/web"),
        (("pod", "search/chat7b"), "pod search/chat7b: does not exist. Of 6 pods, similar: pods search/chat-7b-…"),
        (("pod", "zzz"), "pod default/zzz: does not exist. None of 6 pods has a similar name"),
        (("pod", "shared-1"), "Did you mean node shared-1?"),
        (("node", "shared"), "node shared: does not exist. Of 2 nodes, similar: shared-1"),
        (("node/q",), "node q: does not exist. There are 2 nodes: a, shared-1"),
        (("node", "lone-x"), "Did you mean pod default/lone-x?"),
        (("job/train",), "Job default/train: has no pod that runs or waits: finished are default/train-x"),
        (("service", "web"), 'WHAT: "service" cannot be explained; allowed are pod, node, group and the workloads deployment, statefulset, daemonset, replicaset, replicationcontroller, job, cronjob\n'),
        (("deployment.batch/web",), 'WHAT: "deployment.batch" cannot be explained'),
        (("search/chat-7b",), "; for a pod write pod search/chat-7b"),
        (("deploy", "a/b/c"), 'NAME: "a/b/c" is not a name: write NAME with -n NAMESPACE, or NAMESPACE/NAME'),
        (("deploy",), "NAME: is missing: write deploy NAME or deploy/NAME"),
        (("deploy/",), 'NAME: "" is not a name'),
        (("deploy/web", "nlp"), 'NAME: "nlp" is one name too many: deploy/web is already a type and a name'),
        (("node/a/b",), 'NAME: "a/b" is not a node name'),
        (("deploy", "nlp/web", "-n", "other"), '--namespace: "other" is not the namespace of nlp/web'),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_with_what_is_near(asked: tuple[str, str], said: str) -> None:
    result = explain(*asked, objects=OBJECTS)
    assert result.exit_code == 2
    assert said in unwrapped(result.stderr)


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (("deploy/web",), "Pod default/web-5f-2 waits"),
        (("deployment/web", "-n", "default"), "Pod default/web-5f-2 waits"),
        (("deployments.apps/web",), "Pod default/web-5f-2 waits"),
        (("Deployment.v1.apps/default/web",), "Pod default/web-5f-2 waits"),
        (("replicaset/web-5f",), "Pod default/web-5f-2 waits"),
        (("pod/chat-7b-1", "-n", "search"), "Pod search/chat-7b-1 is on a"),
        (("po", "chat-7b-1", "-n", "search"), "Pod search/chat-7b-1 is on a"),
        (("pod", "search/chat-7b-1", "--namespace", "search"), "Pod search/chat-7b-1 is on a"),
        (("pods.v1./lone-x",), "Pod default/lone-x waits"),
        (("job/mine",), "Pod default/mine-"),
        (("job.batch/mine",), "Pod default/mine-"),
        (("sts/db",), "Pod default/db-0 waits"),
        (("statefulset.apps/db",), "Pod default/db-0 waits"),
        (("ds/agent",), "Pod default/agent-"),
        (("daemonset.apps/agent",), "Pod default/agent-"),
        (("node/shared-1",), "Node shared-1"),
        (("no/shared-1", "-n", "search"), "Node shared-1"),
    ],
)  # fmt: skip
def test_kubectl_s_forms_of_a_name_are_known(asked: tuple[str, ...], first: str) -> None:
    more = [workload("Job", "mine"), workload("StatefulSet", "db"), workload("DaemonSet", "agent")]
    result = explain(*asked, objects=[*OBJECTS, *more])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(first)
