"""What is read of a pod's rules about other pods, against the twins that read them from the raw object."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings

from scheduler.api import names, selectors, wire
from scheduler.api.pods import images, spread, templates
from scheduler.api.pods.affinity import Term
from tests import slices
from tests.model import peer_worlds as worlds
from tests.oracles import image_locality, pod_affinity, topology_spread
from tests.oracles.selectors import is_empty, labels_of, matches, namespace_of, with_own_values

Json = dict[str, Any]
FIELDS = ("podAffinity", "podAntiAffinity")


def template_of(pod: Json) -> templates.PodTemplate:
    found = templates.make_template(msgspec.json.decode(msgspec.json.encode(pod), type=wire.Pod))
    assert found.problem is None
    return found


def read_terms(pod: Json) -> list[Term]:
    """In the order of ``raw_terms``."""
    found = template_of(pod)
    return [
        *found.affinity,
        *found.preferred_affinity,
        *found.anti_affinity,
        *found.preferred_anti_affinity,
    ]


def raw_terms(pod: Json) -> Iterator[tuple[int, Json]]:
    for field in FIELDS:
        yield from ((0, one) for one in pod_affinity.required(pod, field))
        yield from pod_affinity.preferred(pod, field)


def as_served(pod: Json) -> Json:
    """The pod after an API server has merged its label keys."""
    served = copy.deepcopy(pod)
    rules = [term for _, term in raw_terms(served)]
    for rule in (*rules, *served["spec"].get("topologySpreadConstraints", ())):
        merged = with_own_values(rule.get("labelSelector"), labels_of(served), rule)
        if merged is not None:
            rule["labelSelector"] = merged
    return served


@given(worlds.worlds())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_a_term_is_about_the_pods_that_the_twin_names(world: worlds.World) -> None:
    for owner in (world.pod, *world.pods):
        said = list(raw_terms(owner))
        for saying in (owner, as_served(owner)):
            read = read_terms(saying)
            assert [one.weight for one in read] == [weight for weight, _ in said]
            for term, (_, raw) in zip(read, said, strict=True):
                peers = term.find_peers(namespace_of(owner), labels_of(owner))
                for other in (world.pod, *world.pods):
                    space = namespace_of(other)
                    labels = {names.NAMESPACE_NAME: space} | world.namespaces.get(space, {})
                    found = peers.include(space, labels, labels_of(other))
                    assert found == pod_affinity.is_peer(raw, owner, other, world.namespaces)


@given(worlds.worlds())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_a_constraint_counts_the_pods_that_the_twin_counts(world: worlds.World) -> None:
    pod, own = world.pod, namespace_of(world.pod)
    for saying in (pod, as_served(pod)):
        for hard in (True, False):
            action = topology_spread.HARD if hard else topology_spread.SOFT
            read = [one for one in template_of(saying).spread if one.hard == hard]
            rules = topology_spread.constraints(pod, [], action)
            for one, rule in zip(read, rules, strict=True):
                assert (one.topology_key, one.max_skew) == (rule["topologyKey"], rule["maxSkew"])
                assert one.min_domains == rule.get("minDomains", 1)
                assert one.honors_affinity == (rule.get("nodeAffinityPolicy") != "Ignore")
                assert one.honors_taints == (rule.get("nodeTaintsPolicy") == "Honor")
                peers = one.find_peers(own, labels_of(pod))
                assert (peers.selector == selectors.EVERYTHING) == is_empty(rule["labelSelector"])
                for other in (pod, *world.pods):
                    there = namespace_of(other)
                    alike = there == own and matches(rule["labelSelector"], labels_of(other))
                    assert peers.include(there, {}, labels_of(other)) == alike


def selector_of(owner: Json, reference: Json) -> tuple[dict[str, str], selectors.Selector]:
    """``spec.selector`` of the controller, as of a ReplicationController or as of a set."""
    if owner["metadata"]["name"] != reference["name"]:
        return {}, selectors.EVERYTHING
    if owner["kind"] == "ReplicationController":
        return owner["spec"]["selector"], selectors.EVERYTHING
    raw = msgspec.convert(owner["spec"]["selector"], wire.LabelSelector)
    return {}, selectors.read_selector(raw, "")


@given(worlds.worlds())
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_implicit_spread_is_among_the_pods_that_the_twin_names(world: worlds.World) -> None:
    pod = world.pod
    expected = topology_spread.implicit_selector(pod, world.owners)
    near = [one for one in world.owners if namespace_of(one) == namespace_of(pod)]
    services = [one["spec"]["selector"] for one in near if one["kind"] == "Service"]
    (reference,) = pod["metadata"].get("ownerReferences") or [{"name": ""}]
    replication: dict[str, str] = {}
    owner = selectors.EVERYTHING
    for one in near:
        labels, selector = selector_of(one, reference)
        replication, owner = replication | labels, owner.add_requirements(selector.requirements)
    found = spread.make_implicit_selector(labels_of(pod), services, replication, owner)
    assert (found == selectors.EVERYTHING) == is_empty(expected)
    for other in (pod, *world.pods):
        assert found.matches(labels_of(other)) == matches(expected, labels_of(other))


@given(worlds.worlds())
@settings(max_examples=slices.count_examples(100), deadline=None)
def test_images_are_named_as_the_twin_names_them(world: worlds.World) -> None:
    assert list(template_of(world.pod).images) == sorted(image_locality.images(world.pod))
    for node in world.nodes:
        status = msgspec.convert(node, wire.Node).status
        assert dict(images.list_images(status)) == image_locality.sizes(node)
