"""How much a pod may say: bounds, what counts of a pod beyond them, and what is never even decoded."""

from typing import Any

import msgspec
import pytest

from scheduler.api import limits, names, wire
from scheduler.api.limits import PodLimits
from scheduler.api.pods import bounded, gpus, templates
from scheduler.errors import Mistake
from scheduler.kube.watch import listing
from scheduler.state.cluster import Cluster
from tests import make
from tests.operator import attacks

Json = dict[str, Any]
SMALL = PodLimits(
    terms=2,
    peers=2,
    keys=3,
    values=4,
    tolerations=2,
    ports=2,
    resources=3,
    containers=2,
    labels=2,
    names=2,
)


def affinity(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def claims(n: int) -> list[Json]:
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)]


def term(*keys: str, values: int = 1) -> Json:
    words = [f"v{i}" for i in range(values)]
    return {"matchExpressions": [{"key": k, "operator": "In", "values": words} for k in keys]}


def near(*keys: list[str], kind: str = "podAffinity", values: int = 1, **more: Any) -> Json:
    """A required and then preferred terms about pods, each of these labels."""
    first, *others = [
        {"labelSelector": term(*some, values=values), "topologyKey": "zone"} | more for some in keys
    ]
    rules = {
        "requiredDuringSchedulingIgnoredDuringExecution": [first],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": one} for one in others
        ],
    }
    return {"affinity": {kind: rules}}


def spread(*keys: list[str], values: int = 1) -> Json:
    soft = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    terms = [soft | {"labelSelector": term(*some, values=values)} for some in keys]
    return {
        "topologySpreadConstraints": [t | {"topologyKey": f"k{i}"} for i, t in enumerate(terms)]
    }


def ports(n: int) -> list[Json]:
    return [make.container(host_ports=range(1000, 1000 + n))]


def asking(n: int) -> list[Json]:
    return [make.container(requests={f"example.com/r{i}": 1 for i in range(n)})]


CASES: dict[str, tuple[wire.Pod, wire.Pod, str]] = {
    "terms": (
        make.pod(spec=affinity(term("a"), term("b"))),
        make.pod(spec=affinity(term("a"), term("b"), term("c"))),
        "spec.affinity.nodeAffinity (terms)",
    ),
    "expressions": (
        make.pod(spec=affinity(term("a", "b", "c"))),
        make.pod(spec=affinity(term("a", "b", "c", "d"))),
        "spec.affinity.nodeAffinity (expressions)",
    ),
    "values": (
        make.pod(spec=affinity(term("a", values=4))),
        make.pod(spec=affinity(term("a", values=5))),
        "spec.affinity.nodeAffinity (values)",
    ),
    "terms about pods": (
        make.pod(spec=near(["a"], ["b"])),
        make.pod(spec=near(["a"], ["b"], ["c"])),
        "spec.affinity.podAffinity (terms)",
    ),
    "expressions about pods": (
        make.pod(spec=near(["a", "b"], ["c"])),
        make.pod(spec=near(["a", "b"], ["c", "d"])),
        "spec.affinity.podAffinity (expressions)",
    ),
    "values about pods": (
        make.pod(spec=near(["a", "b"], values=2)),
        make.pod(spec=near(["a", "b"], values=3)),
        "spec.affinity.podAffinity (values)",
    ),
    "namespaces": (
        make.pod(spec=near([], namespaces=["a", "b", "c", "d"])),
        make.pod(spec=near([], namespaces=["a", "b", "c", "d", "e"])),
        "spec.affinity.podAffinity (values)",
    ),
    "label keys": (
        make.pod(spec=near(["a"], matchLabelKeys=["b"], mismatchLabelKeys=["c"])),
        make.pod(spec=near(["a"], matchLabelKeys=["b"], mismatchLabelKeys=["c", "d"])),
        "spec.affinity.podAffinity (expressions)",
    ),
    "terms far from pods": (
        make.pod(spec=near(["a"], ["b"], kind="podAntiAffinity")),
        make.pod(spec=near(["a"], ["b"], ["c"], kind="podAntiAffinity")),
        "spec.affinity.podAntiAffinity (terms)",
    ),
    "constraints": (
        make.pod(spec=spread(["a"], ["b"])),
        make.pod(spec=spread(["a"], ["b"], ["c"])),
        "spec.topologySpreadConstraints",
    ),
    "expressions of constraints": (
        make.pod(spec=spread(["a", "b"], ["c"])),
        make.pod(spec=spread(["a", "b"], ["c", "d"])),
        "spec.topologySpreadConstraints (expressions)",
    ),
    "values of constraints": (
        make.pod(spec=spread(["a", "b"], values=2)),
        make.pod(spec=spread(["a", "b"], values=3)),
        "spec.topologySpreadConstraints (values)",
    ),
    "images": (
        make.pod(containers=[make.container() | {"image": "x" * 1000}]),
        make.pod(containers=[make.container() | {"image": "x" * 1001}]),
        "spec.containers[].image",
    ),
    "images of volumes": (
        make.pod(spec={"volumes": [{"image": {"reference": "x"}}] * 2}),
        make.pod(spec={"volumes": [{"image": {"reference": "x"}}] * 3}),
        "spec.volumes (images)",
    ),
    "claims and disks": (
        make.pod(spec={"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}] * 2}),
        make.pod(spec={"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}] * 3}),
        "spec.volumes (claims and disks)",
    ),
    "long images of volumes": (
        make.pod(spec={"volumes": [{"image": {"reference": "x" * 1000}}]}),
        make.pod(spec={"volumes": [{"image": {"reference": "x" * 1001}}]}),
        "spec.volumes[].image.reference",
    ),
    "selector": (
        make.pod(node_selector=dict.fromkeys("abc", "x")),
        make.pod(node_selector=dict.fromkeys("abcd", "x")),
        "spec.nodeSelector",
    ),
    "tolerations": (
        make.pod(tolerations=[{"key": k} for k in "ab"]),
        make.pod(tolerations=[{"key": k} for k in "abc"]),
        "spec.tolerations",
    ),
    "ports": (
        make.pod(containers=ports(2)),
        make.pod(containers=ports(3)),
        "spec.containers[].ports (host ports)",
    ),
    "resources": (
        make.pod(containers=asking(3)),
        make.pod(containers=asking(4)),
        "spec.containers[].resources",
    ),
    "containers": (
        make.pod(containers=[make.container()] * 2),
        make.pod(containers=[make.container()] * 3),
        "spec.containers",
    ),
    "labels": (
        make.pod(labels=dict.fromkeys("ab", "x")),
        make.pod(labels=dict.fromkeys("abc", "x")),
        "metadata.labels",
    ),
    "volumes": (
        make.pod(spec={"volumes": claims(2)}),
        make.pod(spec={"volumes": claims(3)}),
        "spec.volumes (claims and disks)",
    ),
    "names": (
        make.pod(gpu=1, annotations={names.USE_UUID: "a,b"}),
        make.pod(gpu=1, annotations={names.USE_UUID: "a,b,c"}),
        f"metadata.annotations[{names.USE_UUID}]",
    ),
    "words": (
        make.pod(annotations={names.MODE: "x" * 1000}),
        make.pod(annotations={names.MODE: "x" * 1001}),
        f"metadata.annotations[{names.MODE}]",
    ),
}


@pytest.mark.parametrize(("within", "beyond", "field"), CASES.values(), ids=CASES)
def test_a_pod_at_a_bound_passes_and_one_beyond_is_held_by_the_name_of_the_field(
    within: wire.Pod, beyond: wire.Pod, field: str
) -> None:
    assert limits.find_excess(within, SMALL) is None
    problem = limits.find_excess(beyond, SMALL)
    assert problem is not None
    assert problem.field == field
    assert "the maximum" in problem.text


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("within", "beyond", "field"), CASES.values(), ids=CASES)
def test_a_pod_beyond_a_bound_is_held_and_none_that_is_like_it_otherwise(
    within: wire.Pod, beyond: wire.Pod, field: str, is_first: bool
) -> None:
    """Also one of another tenant, and whoever of them comes first."""
    cluster = Cluster(limits=SMALL)
    plain = make.pod(name="plain")
    pods = {"within": within, "beyond": beyond, "plain": plain}
    for name in ("beyond", "within", "plain") if is_first else ("plain", "within", "beyond"):
        meta = msgspec.structs.replace(pods[name].metadata, namespace=name, name=name, uid=name)
        cluster.see_pod(msgspec.structs.replace(pods[name], metadata=meta))
    problems = {uid: pod.problem for uid, pod in cluster.pods.items()}
    held = problems.pop("beyond")
    assert held is not None
    assert held.field == field
    assert problems == {"within": None, "plain": None}


def test_the_bounds_are_so_wide_that_no_real_manifest_meets_them() -> None:
    bounds = PodLimits()
    assert min(bounds.terms, bounds.keys) >= 1000
    assert min(bounds.ports, bounds.resources) >= 256
    assert bounds.peers >= 100


WHOLE_NODE: dict[str, str | int] = {"cpu": "60", "memory": "400Gi", names.GPU: 8}
# What a tenant can put beside it so that the pod is beyond the bounds; a kubelet admits all of them.
SURPLUS: dict[str, list[Json]] = {
    "nothing": [],
    "resources of none": [make.container(requests={f"hugepages-{i}": "0" for i in range(1, 300)})],
    "resources that no node knows": [
        make.container(requests={f"a.example/r{i}": 1 for i in range(300)})
    ],
    "resources of half a megabyte": [
        make.container(requests={f"a.example/{'r' * 40}{i}": 1 for i in range(8000)})
    ],
    "a thousand containers": [make.container(name=f"c{i}") for i in range(1001)],
    "ports": ports(300),
    "an image of a megabyte": [make.container(name="image") | {"image": "x" * 1_000_000}],
}


@pytest.mark.parametrize("surplus", SURPLUS.values(), ids=SURPLUS)
def test_whatever_a_running_pod_says_besides_it_is_charged_all_that_it_asks(
    surplus: list[Json],
) -> None:
    """Else its cards, memory and CPU would be given away twice."""
    asks = make.container(name="asks", requests={**WHOLE_NODE, "zzz.example/fpga": 4})
    pod = make.pod(node="n", containers=[*surplus, asks])
    read = listing.make_pod_reader(PodLimits())(msgspec.json.encode(pod))
    template = templates.make_template(read)
    asked = dict(template.requests.amounts)
    assert (asked["cpu"], asked["memory"]) == (60_000, 400 << 30)
    assert (asked[names.GPU], asked["zzz.example/fpga"]) == (8, 4)
    assert template.gpu is not None
    assert gpus.sum_up(template.gpu).cards == 8
    assert bool(surplus) == (template.problem is not None)


def test_a_pod_that_etcd_could_hardly_take_again_is_held() -> None:
    """Before a bind can be given up its pod is changed, so one that cannot be is not bound."""
    pod = attacks.bulk("ns", 0.1)[0]
    pod["spec"]["containers"][0]["args"] = ["x" * bounded.UNCHANGEABLE_BYTES]
    read = listing.make_pod_reader(PodLimits())(msgspec.json.encode(pod))
    problem = templates.make_template(read).problem
    assert problem is not None
    assert problem.field == "pod"


def test_the_field_that_is_too_long_is_named_before_the_size_of_the_whole_pod() -> None:
    """What the API server adds of its own (managedFields) may double what was created."""
    pod = attacks.ports("ns", 0.1)[0]
    pod["metadata"]["managedFields"] = "x" * bounded.UNCHANGEABLE_BYTES
    found = bounded.decode_pod(msgspec.json.encode(pod), PodLimits())
    assert str(found.oversized).startswith("spec.containers[].ports: is larger")


@pytest.mark.parametrize(
    "name", ["named", "terms", "keys", "peers", "ports", "resources", "wishes", "containers"]
)
def test_a_large_pod_within_the_bounds_is_decoded_like_any_other(name: str) -> None:
    raw = msgspec.json.encode(attacks.ALL[name]("ns", 0.1)[0])
    boundless = PodLimits(
        **dict.fromkeys(PodLimits.__dataclass_fields__, 1 << 30)  # every bound out of reach
    )
    assert bounded.decode_pod(raw, boundless) == msgspec.json.decode(raw, type=wire.Pod)


def test_a_field_that_is_too_large_is_not_decoded_and_named() -> None:
    pod = attacks.terms("ns", 0.1)[0]
    pod["metadata"]["uid"] = "u"
    found = bounded.decode_pod(msgspec.json.encode(pod), PodLimits(text=1000))
    assert found.spec.affinity is None
    assert found.metadata.uid == "u"
    problem = limits.find_excess(found, PodLimits())
    assert problem is not None
    assert str(problem) == "spec.affinity: is larger than 1000 bytes, the maximum"


def test_a_large_pod_beyond_the_bounds_keeps_no_more_than_what_is_charged() -> None:
    raw = msgspec.json.encode(attacks.keys("ns", 0.1)[0])
    found = bounded.decode_pod(raw, PodLimits())
    assert found.spec.node_selector is None
    assert found.oversized is not None
    assert found.oversized.field == "spec.nodeSelector"


def test_two_oversized_pods_with_other_fields_missing_are_of_two_templates() -> None:
    one, other = make.pod(), make.pod()
    one.oversized = Mistake("spec.affinity", "too large")
    other.oversized = Mistake("spec.volumes", "too large")
    assert templates.make_key(one) != templates.make_key(other)
