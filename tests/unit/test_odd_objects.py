"""Whatever text an API server lets through, the scheduler reads it and lives: one odd object stops nobody.

Types are as Kubernetes guarantees them; every text and figure within is the hardest to be had.
"""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.state import checks
from scheduler.state.cluster import Cluster
from tests import make, slices

Json = dict[str, Any]

RESOURCES = [
    names.CPU, names.MEMORY, names.PODS, names.GPU, names.GPU_MEMORY, names.GPU_MEMORY_PERCENT,
    names.GPU_CORES, names.GPU_PRIORITY, names.EPHEMERAL, names.IOPS, "hugepages-2Mi", "a/b", "",
]  # fmt: skip
QUANTITIES = st.one_of(
    st.sampled_from([
        "0", "1", "-1", "+1", "1e3", "1E", "9E", "9223372036854775807", "9223372036854775808",
        "1e400", "1e-400", "-1e99", "100Ei", "7Ei", "1n", ".5", "5.", ".", "", " 1", "1 ", "١", "0x1",
        "1_000", "NaN", "Inf", "1e", "1ki", "1Ki", "1" * 500, "0." + "0" * 300 + "1",
    ]),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=6),
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from([
        "", " ", ",", ":", ";", "a,b", "GPU-0,NVIDIA,1,1:;", "GPU-0,NVIDIA,1e9,1:;", ";;;", "[]", "[{}]", "{",
        "[" * 2000, '[{"id":"GPU-0","count":10,"devmem":15360,"devcore":100,"health":true}]',
        '[{"id":"a","index":-1}]', '[{"id":"a","devmem":1e99}]', "null", "binpack", "spread", "topology-aware",
        "x:1,y:2", "true", "False", "\x00", "é" * 300, "GPU-0,10,15360,100,T4,0,true:", "1,2,3,4,5,6,7,8,9:",
        "lambda-g", "most-allocated", "hami-core", "mig", "1e309", "cpu=1", '{"cpu": 1}',
    ]),
    st.text(max_size=12),
)  # fmt: skip
NOTES = st.dictionaries(
    st.sampled_from([
        *sorted(names.STEERING), names.HAMI_REGISTER, names.HAMI_CORDON, names.HAMI_LOCK, names.HAMI_NODE,
        names.HAMI_ALLOCATED, names.HAMI_BIND_PHASE, "other",
    ]),
    TEXTS,
    max_size=5,
)  # fmt: skip
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), QUANTITIES, max_size=4)
WORDS = st.one_of(
    st.sampled_from(["a", "b", "", "5", "-5", "9" * 30, "NoSchedule", "NoExecute"]),
    st.text(max_size=4),
)
LABELS = st.dictionaries(WORDS, WORDS, max_size=3)
EXPRESSION = st.fixed_dictionaries({
    "key": st.one_of(WORDS, st.just("metadata.name")),
    "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd", ""]),
    "values": st.none() | st.lists(WORDS, max_size=3),
})  # fmt: skip
TERM = st.fixed_dictionaries({
    "matchExpressions": st.none() | st.lists(EXPRESSION, max_size=2),
    "matchFields": st.none() | st.lists(EXPRESSION, max_size=2),
})  # fmt: skip
# Most of a pod's rules about other pods are good, or nothing behind them would be tried.
LABEL = st.sampled_from(["a", "b", "a.b/c", "a", "b", "", "-", "é", "9" * 64])
LABEL_SELECTOR = st.none() | st.fixed_dictionaries({
    "matchLabels": st.none() | st.dictionaries(LABEL, LABEL, max_size=2),
    "matchExpressions": st.none() | st.lists(st.fixed_dictionaries({
        "key": LABEL,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", ""]),
        "values": st.none() | st.lists(LABEL, max_size=2),
    }), max_size=2),
})  # fmt: skip
POD_TERM = st.fixed_dictionaries({
    "topologyKey": LABEL,
    "labelSelector": LABEL_SELECTOR,
    "namespaces": st.none() | st.lists(LABEL, max_size=2),
    "namespaceSelector": LABEL_SELECTOR,
    "matchLabelKeys": st.none() | st.lists(LABEL, max_size=2),
    "mismatchLabelKeys": st.none() | st.lists(LABEL, max_size=2),
})  # fmt: skip
POD_AFFINITY = st.none() | st.fixed_dictionaries({
    "requiredDuringSchedulingIgnoredDuringExecution": st.none() | st.lists(POD_TERM, max_size=2),
    "preferredDuringSchedulingIgnoredDuringExecution": st.none() | st.lists(
        st.fixed_dictionaries({"weight": st.sampled_from([1, 100, 0, -1, 2**40]), "podAffinityTerm": POD_TERM}),
        max_size=2,
    ),
})  # fmt: skip
SPREAD = st.fixed_dictionaries({
    "maxSkew": st.sampled_from([1, 5, 0, -1, 2**31]),
    "topologyKey": LABEL,
    "whenUnsatisfiable": st.sampled_from(["ScheduleAnyway", "DoNotSchedule", "odd"]),
    "labelSelector": LABEL_SELECTOR,
    "minDomains": st.sampled_from([None, None, 1, 0, 2**40]),
    "nodeAffinityPolicy": st.sampled_from([None, "Honor", "Ignore", "odd"]),
    "nodeTaintsPolicy": st.sampled_from([None, "Honor", "Ignore", ""]),
    "matchLabelKeys": st.none() | st.lists(LABEL, max_size=2),
})  # fmt: skip
IMAGE = st.sampled_from(["", "a", "a:1", "a:1/b", ":", "/", "a@sha256:0", "é" * 300, "x" * 1001])
TOLERATION = st.fixed_dictionaries({
    "key": WORDS,
    "operator": st.sampled_from(["", "Equal", "Exists", "Odd", "Lt", "Gt"]),
    "value": WORDS,
    "effect": WORDS,
})  # fmt: skip
CONTAINER = st.fixed_dictionaries({
    "name": WORDS,
    "image": IMAGE,
    "resources": st.fixed_dictionaries({"requests": AMOUNTS, "limits": AMOUNTS}),
    "restartPolicy": st.sampled_from([None, "Always", "odd"]),
    "ports": st.none() | st.lists(st.fixed_dictionaries({
        "hostPort": st.integers(-1, 70_000), "hostIP": WORDS, "protocol": WORDS,
    }), max_size=2),
})  # fmt: skip
STATUS = st.fixed_dictionaries({
    "phase": st.sampled_from(["", "Pending", "Running", "odd"]),
    "conditions": st.none() | st.lists(st.fixed_dictionaries({
        "type": st.sampled_from(["Initialized", "PodResizePending", "odd"]),
        "status": st.sampled_from(["True", "odd"]),
        "reason": st.sampled_from(["Infeasible", "Deferred", ""]),
    }), max_size=2),
    "containerStatuses": st.none() | st.lists(st.fixed_dictionaries({
        "name": WORDS, "allocatedResources": st.none() | AMOUNTS,
    }), max_size=2),
})  # fmt: skip
POD = st.fixed_dictionaries({
    "metadata": st.fixed_dictionaries({
        "name": WORDS, "namespace": WORDS, "uid": st.sampled_from(["1", "2", "3"]), "labels": LABELS, "annotations": NOTES,
    }),
    "spec": st.fixed_dictionaries({
        "schedulerName": st.sampled_from([names.SCHEDULER, names.SCHEDULER, "other"]),
        "nodeName": st.sampled_from([None, None, "n", "m"]),
        "priority": st.integers(-(2**31), 2**31 - 1),
        "nodeSelector": st.none() | LABELS,
        "containers": st.lists(CONTAINER, min_size=1, max_size=3),
        "initContainers": st.none() | st.lists(CONTAINER, max_size=2),
        "overhead": st.none() | AMOUNTS,
        "resources": st.none() | st.fixed_dictionaries({"requests": AMOUNTS, "limits": AMOUNTS}),
        "tolerations": st.none() | st.lists(TOLERATION, max_size=2),
        "affinity": st.none() | st.fixed_dictionaries({"nodeAffinity": st.fixed_dictionaries({
            "requiredDuringSchedulingIgnoredDuringExecution": st.none() | st.fixed_dictionaries({
                "nodeSelectorTerms": st.none() | st.lists(TERM, max_size=2),
            }),
            "preferredDuringSchedulingIgnoredDuringExecution": st.none() | st.lists(
                st.fixed_dictionaries({"weight": st.integers(-100, 10**9), "preference": TERM}), max_size=2,
            ),
        }), "podAffinity": POD_AFFINITY, "podAntiAffinity": POD_AFFINITY}),
        "topologySpreadConstraints": st.none() | st.lists(SPREAD, max_size=2),
        "volumes": st.none() | st.lists(st.fixed_dictionaries({
            "image": st.fixed_dictionaries({"reference": IMAGE}),
        }), max_size=2),
    }),
    "status": STATUS,
})  # fmt: skip
NODE = st.fixed_dictionaries({
    "metadata": st.fixed_dictionaries({
        "name": st.sampled_from(["n", "m", ""]), "uid": WORDS, "labels": LABELS, "annotations": NOTES,
    }),
    "spec": st.fixed_dictionaries({
        "taints": st.none() | st.lists(st.fixed_dictionaries({
            "key": WORDS, "value": WORDS, "effect": WORDS,
        }), max_size=2),
    }),
    "status": st.fixed_dictionaries({
        "allocatable": AMOUNTS,
        "images": st.none() | st.lists(st.fixed_dictionaries({
            "names": st.none() | st.lists(IMAGE, max_size=2), "sizeBytes": st.integers(-1, 2**63 - 1),
        }), max_size=2),
    }),
})  # fmt: skip


def _decoded(body: Json, kind: Any) -> Any:
    """The object as a stream reads it, from bytes, in which an absent field is absent."""
    return msgspec.json.decode(msgspec.json.encode(_without_nulls(body)), type=kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


@given(st.lists(NODE, max_size=3), st.lists(POD, min_size=1, max_size=4))
@settings(max_examples=slices.count_examples(400), deadline=None)
def test_no_object_stops_the_scheduler(nodes: list[Json], pods: list[Json]) -> None:
    cluster = Cluster()
    cycle = make.cycle(cluster=cluster)
    cluster.see_node(make.hami_node(name="good", cards=1))
    for node in nodes:
        cluster.see_node(_decoded(node, wire.Node))
    for pod in pods:
        cluster.see_pod(_decoded(pod, wire.Pod))
    good = cluster.see_pod(make.pod(name="good", cpu="1", gpu=1, gpumem=100))
    assert good is not None
    waiting = [pod for pod in cluster.pods.values() if pod.ours and not pod.node]
    outcome = cycle.schedule(waiting)
    decided = {bind.uid for bind in outcome.binds} | {hold.uid for hold in outcome.holds}
    assert decided == {pod.uid for pod in waiting}
    for record in waiting:
        if not record.node:
            cycle.explain_hold(record)
    checks.verify(cluster)
    assert not [hold for hold in outcome.holds if hold.uid == good.uid and hold.problem]


def test_a_node_without_a_name_takes_no_pods() -> None:
    """A pod on it would be one without a node, and charged for ever."""
    nameless = make.node(name="n")
    nameless.metadata.name = ""
    cluster = make.cluster(nodes=[nameless], pods=[make.pod(name="p")])
    assert not make.cycle(cluster=cluster).schedule(list(cluster.pods.values())).binds
    facts = cluster.find_facts("")
    assert facts is not None
    assert str(facts.problem) == "metadata.name: is missing"
