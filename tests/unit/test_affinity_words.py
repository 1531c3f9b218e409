"""Pod affinity, topology spread and images as a pod says them: what is read, merged, and refused by name."""

from typing import Any

import msgspec
import pytest

from scheduler.api import names, selectors, wire
from scheduler.api.pods import affinity, images, spread, templates
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import EVERYTHING, NOTHING, Requirement
from scheduler.simulate import InputProblem, schedule
from tests import make

Json = dict[str, Any]
APP = {"matchLabels": {"app": "x"}}
IS_APP = selectors.make_selector([Requirement("app", "In", ("x",))])


def template(**spec: Any) -> templates.PodTemplate:
    return templates.make_template(make.pod(spec=spec))


def rules(kind: str, *required: Json, preferred: list[Json] | None = None) -> Json:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": list(required)}
    if preferred is not None:
        terms["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {kind: terms}


def term(selector: Json | None = APP, **more: Any) -> Json:
    given = {} if selector is None else {"labelSelector": selector}
    return {"topologyKey": "zone", **given, **more}


def read(*required: Json) -> affinity.Terms:
    return template(affinity=rules("podAffinity", *required)).affinity


def constraint(selector: Json | None = APP, **more: Any) -> Json:
    given = {} if selector is None else {"labelSelector": selector}
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return base | given | more


def test_terms_of_all_four_lists_stand_in_the_template() -> None:
    near = rules("podAffinity", term(), preferred=[{"weight": 7, "podAffinityTerm": term(None)}])
    far = rules("podAntiAffinity", term({}), preferred=[{"weight": 100, "podAffinityTerm": term()}])
    found = template(affinity=near | far)
    plain = affinity.Term("zone", (), NOTHING, IS_APP)
    assert found.affinity == (plain,)
    assert found.anti_affinity == (plain._replace(selector=EVERYTHING),)
    assert found.preferred_affinity == (plain._replace(selector=NOTHING, weight=7),)
    assert found.preferred_anti_affinity == (plain._replace(weight=100),)
    assert found.problem is None
    assert template().affinity == template().preferred_anti_affinity == ()


PREFERRED = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ({"operator": "Gt", "values": ["x"]}, "values: must be one whole number for the operators Gt and Lt"),
        ({"operator": "NotIn", "values": ["a b"]}, "values[0]: 'a b' is not a label's value"),
        ({"operator": "Exists", "values": ["a"]}, "values: must not be set for the operators Exists and DoesNotExist"),
        ({"operator": "Near"}, 'operator: "Near" is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt'),
        ({"operator": "In", "values": []}, "values: must be set for the operators In and NotIn"),
        ({"key": "a b", "operator": "Exists"}, "key: 'a b' is not a label's name"),
    ],
)  # fmt: skip
def test_a_preference_among_nodes_that_cannot_be_read_is_told_by_its_field(
    expression: Json, problem: str
) -> None:
    """As in kube-scheduler, where such a pod waits; its required terms are passed over one by one."""
    good = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    bad = {"matchExpressions": [{"key": "a"} | expression]}

    def of(*terms: tuple[int, Json]) -> templates.PodTemplate:
        preferred = [{"weight": weight, "preference": one} for weight, one in terms]
        nodes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        return template(affinity={"nodeAffinity": nodes})

    found = of((1, good), (2, bad))
    assert found.problem is not None
    assert str(found.problem) == f"{PREFERRED}[1].preference.matchExpressions[0].{problem}"
    assert found.preferred == ()
    # What weighs nothing is not read, and what is empty matches nothing.
    passed_over = of((1, good), (0, bad), (3, {}))
    assert passed_over.problem is None
    assert [weight for weight, _ in passed_over.preferred] == [1]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [bad, good]}}  # fmt: skip
    either = template(affinity={"nodeAffinity": required})
    assert either.problem is None
    assert either.required is not None
    assert len(either.required) == 1


def test_namespaces_of_a_term_are_its_pods_own_where_none_is_named() -> None:
    own, listed, selected, every, both = read(
        term(),
        term(namespaces=["b", "a", "b"]),
        term(namespaceSelector={"matchLabels": {"team": "ml"}}),
        term(namespaceSelector={}),
        term(namespaces=["a"], namespaceSelector={"matchLabels": {"team": "ml"}}),
    )
    ml = selectors.make_selector([Requirement("team", "In", ("ml",))])
    assert own.find_peers("ns", {}) == Peers(("ns",), NOTHING, IS_APP)
    assert listed.find_peers("ns", {}) == Peers(("a", "b"), NOTHING, IS_APP)
    assert selected.find_peers("ns", {}) == Peers((), ml, IS_APP)
    assert every.find_peers("ns", {}) == Peers((), EVERYTHING, IS_APP)
    assert both.find_peers("ns", {}) == Peers(("a",), ml, IS_APP)


def test_peers_are_pods_of_a_named_or_selected_namespace_that_the_selector_matches() -> None:
    (both,) = read(term(namespaces=["a"], namespaceSelector={"matchLabels": {"team": "ml"}}))
    peers, app = both.find_peers("ns", {}), {"app": "x", "more": "y"}
    assert peers.include("a", {}, app)
    assert peers.include("b", {"team": "ml"}, app)
    assert not peers.include("b", {"team": "web"}, app)
    assert not peers.include("ns", {}, app)
    assert not peers.include("a", {}, {"app": "z"})


MERGED = selectors.make_selector([
    Requirement("app", "In", ("x",)), Requirement("hash", "In", ("1",)), Requirement("tenant", "NotIn", ("t",)),
])  # fmt: skip


def test_label_keys_stand_for_the_pods_own_values_and_merging_them_twice_is_merging_once() -> None:
    """``kubectl get -o yaml`` prints what the API server has merged already."""
    keys: Json = {"matchLabelKeys": ["hash", "none"], "mismatchLabelKeys": ["tenant"]}
    labels = {"app": "x", "hash": "1", "tenant": "t"}
    merged = APP | {"matchExpressions": [
        {"key": "hash", "operator": "In", "values": ["1"]}, {"key": "tenant", "operator": "NotIn", "values": ["t"]},
    ]}  # fmt: skip
    as_written, as_served = read(term(**keys), term(merged, **keys))
    assert as_written != as_served
    assert as_written.find_peers("ns", labels) == as_served.find_peers("ns", labels)
    assert as_written.find_peers("ns", labels).selector == MERGED
    assert as_written.find_peers("ns", {}).selector == IS_APP
    written, served = template(topologySpreadConstraints=[
        constraint(matchLabelKeys=["hash"]),
        constraint(merged, matchLabelKeys=["hash"], whenUnsatisfiable="ScheduleAnyway"),
    ]).spread  # fmt: skip
    assert written.find_peers("ns", labels).selector == IS_APP.add_requirements(
        [Requirement("hash", "In", ("1",))]
    )
    assert served.find_peers("ns", labels).selector == MERGED


def test_what_the_api_server_wrote_of_label_keys_holds_when_the_labels_change() -> None:
    """Somebody takes a pod that waits out of its ReplicaSet: it still looks for those it was made with."""
    merged = APP | {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]}
    (served,) = read(term(merged, matchLabelKeys=["hash"]))
    made_with = IS_APP.add_requirements([Requirement("hash", "In", ("1",))])
    for labels in ({"hash": "1"}, {"hash": "2"}, {}):
        assert served.find_peers("ns", labels).selector == made_with


def test_a_constraint_has_kubernetes_defaults() -> None:
    (plain,) = template(topologySpreadConstraints=[constraint(None)]).spread
    assert plain == spread.Constraint("zone", 1, hard=True, selector=NOTHING)
    assert (plain.min_domains, plain.honors_affinity, plain.honors_taints) == (1, True, False)
    assert plain.find_peers("ns", {"a": "b"}) == Peers(("ns",), NOTHING, NOTHING)
    every, soft = template(topologySpreadConstraints=[
        constraint({}, maxSkew=3, minDomains=4, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"),
        constraint(whenUnsatisfiable="ScheduleAnyway"),
    ]).spread  # fmt: skip
    assert every == spread.Constraint(
        "zone", 3, hard=True, selector=EVERYTHING, min_domains=4, honors_affinity=False, honors_taints=True
    )  # fmt: skip
    assert soft == plain._replace(hard=False, selector=IS_APP)


NEAR = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
FAR = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"


def near(**more: Any) -> Json:
    return {"affinity": rules("podAffinity", term(**more))}


def far(weight: Any, **more: Any) -> Json:
    preferred = [{"weight": weight, "podAffinityTerm": term(**more)}]
    return {"affinity": rules("podAntiAffinity", preferred=preferred)}


def spreading(*more: Json) -> Json:
    return {"topologySpreadConstraints": [constraint() | one for one in more]}


IN_HASH = {"key": "hash", "operator": "In", "values": ["1"]}
BAD: list[tuple[Json, str]] = [
    (near(topologyKey=""), f"{NEAR}.topologyKey: must be set"),
    (near(topologyKey="a b"), f"{NEAR}.topologyKey: 'a b' is not a label's name"),
    (near(namespaces=["a", "B"]), f"{NEAR}.namespaces[1]: 'B' is not a namespace's name"),
    (
        near(namespaceSelector={"matchLabels": {"-": ""}}),
        f"{NEAR}.namespaceSelector.matchLabels: '-' is not a label's name",
    ),
    (
        near(selector={"matchLabels": {"": ""}}),
        f"{NEAR}.labelSelector.matchLabels: '' is not a label's name",
    ),
    (
        near(selector=None, matchLabelKeys=["a"]),
        f"{NEAR}.matchLabelKeys: must not be set without labelSelector",
    ),
    (
        near(selector=None, mismatchLabelKeys=["a"]),
        f"{NEAR}.mismatchLabelKeys: must not be set without labelSelector",
    ),
    (near(matchLabelKeys=["a", ""]), f"{NEAR}.matchLabelKeys[1]: '' is not a label's name"),
    (
        near(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
        f"{NEAR}.mismatchLabelKeys: 'a' is among matchLabelKeys too",
    ),
    (
        near(selector={"matchExpressions": [IN_HASH, IN_HASH]}, matchLabelKeys=["hash"]),
        f"{NEAR}.matchLabelKeys: 'hash' is in labelSelector too",
    ),
    (far(0), f"{FAR}.weight: 0 is not within 1..100"),
    (far(101), f"{FAR}.weight: 101 is not within 1..100"),
    (far(1, topologyKey=""), f"{FAR}.podAffinityTerm.topologyKey: must be set"),
    (spreading({"maxSkew": 0}), f"{SPREAD}.maxSkew: 0 is not within 1..2147483647"),
    (spreading({"topologyKey": ""}), f"{SPREAD}.topologyKey: must be set"),
    (
        spreading({"whenUnsatisfiable": "Maybe"}),
        f"{SPREAD}.whenUnsatisfiable: 'Maybe' is not one of DoNotSchedule, ScheduleAnyway",
    ),
    (spreading({"minDomains": 0}), f"{SPREAD}.minDomains: 0 is not within 1..2147483647"),
    (
        spreading({"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"}),
        f"{SPREAD}.minDomains: must not be set unless whenUnsatisfiable is DoNotSchedule",
    ),
    (
        spreading({"nodeAffinityPolicy": ""}),
        f"{SPREAD}.nodeAffinityPolicy: '' is not one of Honor, Ignore",
    ),
    (
        spreading({"nodeTaintsPolicy": "No"}),
        f"{SPREAD}.nodeTaintsPolicy: 'No' is not one of Honor, Ignore",
    ),
    (
        spreading({"matchLabelKeys": ["app"], "labelSelector": APP | {"matchExpressions": [
            {"key": "app", "operator": "Exists"}]}}),
        f"{SPREAD}.matchLabelKeys: 'app' is in labelSelector too",
    ),
    (
        spreading({}, {}),
        "spec.topologySpreadConstraints[1]: repeats topologyKey and whenUnsatisfiable of another constraint",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "error"), BAD)
def test_a_rule_that_no_api_server_takes_is_refused_by_its_field(spec: Json, error: str) -> None:
    assert str(template(**spec).problem) == error


def test_a_rule_that_is_malformed_is_an_error_of_the_manifest() -> None:
    body = msgspec.to_builtins(make.pod(name="p", spec=far(0))) | {"kind": "Pod"}
    with pytest.raises(InputProblem) as caught:
        schedule([body], strict=True)
    assert str(caught.value) == f"Pod default/p: {FAR}.weight: 0 is not within 1..100"
    body["spec"]["topologySpreadConstraints"] = [{"maxSkew": "1"}]
    with pytest.raises(InputProblem) as caught:
        schedule([body], strict=True)
    assert caught.value.field == "spec.topologySpreadConstraints[0].maxSkew"


def test_of_the_four_lists_of_terms_only_the_malformed_one_counts_for_nothing() -> None:
    """So does kube-scheduler with pods that run already."""
    found = template(affinity=rules("podAffinity", term(), term(topologyKey=""))
                     | rules("podAntiAffinity", term()))  # fmt: skip
    assert found.affinity == ()
    assert len(found.anti_affinity) == 1
    assert found.problem


def test_pods_that_differ_in_a_rule_about_pods_are_of_two_templates() -> None:
    def key(**spec: Any) -> bytes:
        return templates.make_key(make.pod(spec=spec))

    assert key(**near()) != key(**near(matchLabelKeys=["a"])) != key()
    assert key(**near()) != key(**near(namespaceSelector={}))
    assert key(**spreading({})) != key(**spreading({"maxSkew": 2}))
    one, other = ({"containers": [make.container() | {"image": name}]} for name in "ab")
    assert key(**one) != key(**other)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("root@sha256:abc", "root@sha256:abc"),
        ("gcr.io/root:1.2", "gcr.io/root:1.2"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_is_its_latest(name: str, full: str) -> None:
    """kube-scheduler: TestNormalizedImageName."""
    assert images.normalise(name) == full


def test_images_of_all_containers_and_image_volumes_count_one_by_one() -> None:
    spec = {
        "containers": [make.container() | {"image": "b"}, make.container() | {"image": "a:1"}],
        "initContainers": [make.container() | {"image": "b"}],
        "volumes": [{"name": "v", "image": {"reference": "c"}}, {"name": "w", "emptyDir": {}}],
    }
    assert template(**spec).images == ("a:1", "b:latest", "b:latest", "c:latest")


def test_images_of_a_node_go_by_all_their_names() -> None:
    body = {"images": [
        {"names": ["a:1", "a@sha256:0"], "sizeBytes": 5}, {"names": ["a:1"], "sizeBytes": 9}, {"sizeBytes": 1},
    ]}  # fmt: skip
    status = msgspec.json.decode(msgspec.json.encode(body), type=wire.NodeStatus)
    assert images.list_images(status) == (("a:1", 5), ("a@sha256:0", 5))
    assert images.list_images(wire.NodeStatus()) == ()


def test_the_implicit_selector_is_that_of_the_pods_services_and_of_its_controller() -> None:
    """kube-scheduler: helper.DefaultSelector."""
    labels, none = {"app": "x", "tier": "web"}, EVERYTHING
    services = [{"app": "x"}, {"app": "other"}, {"tier": "web", "app": "x"}, {}]
    web = Requirement("tier", "In", ("web",))
    assert spread.make_implicit_selector(labels, services, {}, none) == IS_APP.add_requirements(
        [web]
    )
    assert spread.make_implicit_selector(labels, [], {}, IS_APP) == IS_APP
    assert spread.make_implicit_selector(labels, [{"app": "y"}], {"app": "x"}, none) == IS_APP
    assert spread.make_implicit_selector(labels, [{"app": "y"}], {}, none) == EVERYTHING
    assert [one.topology_key for one in spread.SYSTEM_DEFAULTS] == [names.HOSTNAME, names.ZONE]
