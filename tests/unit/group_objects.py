"""Builders of the objects that stand for groups, of pods with owners, and of the odd JSON that tenants may write."""

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.api.groups import definitions, objects, table
from scheduler.api.groups.definitions import Definition, GroupKey, Membership
from scheduler.errors import BadInput
from tests import make

Json = dict[str, Any]
R = TypeVar("R", bound=objects.Raw)
Texts = Mapping[str, str]

_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**63, -(2**63), 10**100, 1.5, float("nan")]),
    st.sampled_from(
        ["", "a", "1", "-1", "*", "a/b", "x" * 300, "\ud800", "\x00", "all", "9" * 5000]
    ),
    st.text(max_size=8),
)
JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.just([{"name": f"p{i}"} for i in range(100)]),
        st.dictionaries(st.sampled_from(["name", "size", "key", "parent", ""]), inner, max_size=3),
    ),
    max_leaves=6,
)


def make_object(
    shape: type[R],
    spec: Any = None,
    *,
    status: Any = None,
    name: str = "g",
    labels: Texts | None = None,
    annotations: Texts | None = None,
) -> R:
    """An object of a kind that the readers read."""
    meta = wire.Meta(
        name=name,
        namespace="ns",
        uid="uid",
        generation=7,
        creation_timestamp="2026-01-01T00:00:00Z",
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
    )
    return shape(metadata=meta, spec=spec, status=status)


def make_pod(
    labels: Texts | None = None,
    annotations: Texts | None = None,
    *,
    owner: str = "",
    spec: Json | None = None,
) -> wire.Pod:
    """A pod in the namespace ns; its owner is written ``batch/v1 Job train``."""
    pod = make.pod(name="p", namespace="ns", labels=labels, annotations=annotations, spec=spec)
    if owner:
        version, kind, name = owner.split()
        found = wire.Owner(kind=kind, name=name, api_version=version, controller=True)
        pod.metadata.owner_references = [found]
    return pod


def read_member(pod: wire.Pod, *switched_on: str) -> Membership:
    """The membership of a pod that is in a group and has no mistake."""
    member = table.read_membership(pod, switched_on)
    assert member is not None
    assert member.problem is None
    return member


def find_problem(pod: wire.Pod) -> str:
    """What is wrong with a pod that is in a group."""
    member = table.read_membership(pod)
    assert member is not None
    return str(member.problem)


def read(found: table.GroupSource) -> Definition:
    """The definition by an object without a mistake."""
    definition = table.read_definition(found)
    assert definition.problem is None
    assert definition.created == found.metadata.creation_timestamp
    assert (definition.uid, definition.generation) == ("uid", 7)
    return definition


def find_mistake(found: table.GroupSource) -> str:
    """What is wrong with an object; the rest of it is read all the same."""
    definition = table.read_definition(found)
    assert definition.uid == "uid"
    assert definition.root == definitions.Part("", 1)
    return str(definition.problem)


def check_odd(found: table.GroupSource) -> None:
    """Whatever is written, the answer is a definition that keeps its promises, or a mistake in a few words."""
    _check_definition(table.read_definition(found))


def check_odd_pod(pod: wire.Pod, *switched_on: str) -> None:
    """Likewise for a pod."""
    member = table.read_membership(pod, switched_on)
    if member is None:
        return
    assert isinstance(member.group, GroupKey)
    assert max(len(member.group.name), len(member.part)) < 300
    if member.problem is not None:
        assert member.problem.text
        assert len(str(member.problem)) < 3000
    if member.definition is not None:
        _check_definition(member.definition)


def check_odd_topology(found: objects.TopologyObject) -> None:
    """Likewise for a topology, of which a mistake is raised."""
    problem, levels = "", tuple[definitions.Level, ...]()
    try:
        levels = table.read_topology(found).levels
    except BadInput as error:
        problem = str(error)
    assert bool(problem) != bool(levels)
    assert len(problem) < 3000
    assert len(set(levels)) == len(levels)


def _check_definition(definition: Definition) -> None:
    if definition.problem is not None:
        assert definition.problem.text
        assert len(str(definition.problem)) < 3000
        return
    leaves = list(definition.root.list_leaves())
    assert len({one.name for one in leaves}) == len(leaves)
    assert all(0 <= one.minimum < 2**31 and 0 <= one.total < 2**31 for one in leaves)
    if definition.root.parts:
        assert definition.root.minimum <= len(definition.root.parts)


@st.composite
def damage(draw: st.DrawFn, valid: Any) -> Any:
    """A valid piece of JSON in which one or two values are replaced by any others."""
    damaged = copy.deepcopy(valid)
    for _ in range(draw(st.integers(1, 2))):
        damaged = _replace(draw, damaged)
    return damaged


def _replace(draw: st.DrawFn, raw: Any) -> Any:
    keys = (
        list(raw)
        if isinstance(raw, dict)
        else list(range(len(raw)))
        if isinstance(raw, list)
        else []
    )
    if not keys or draw(st.integers(0, 3)) == 0:
        return copy.deepcopy(draw(JSON))
    key = draw(st.sampled_from(keys))
    raw[key] = _replace(draw, raw[key])
    return raw
