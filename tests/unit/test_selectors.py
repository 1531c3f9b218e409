"""Selectors: what matches, what means the same, and what is refused by the name of its field."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import selectors, wire
from scheduler.api.packing import pack_texts
from scheduler.errors import BadInput
from scheduler.state.structures.sizes import estimate_bytes

Json = dict[str, Any]


def of_wire(raw: Json | None) -> selectors.Selector:
    given_ = None if raw is None else msgspec.convert(raw, wire.LabelSelector)
    return selectors.read_selector(given_, "f")


def expression(operator: str, *values: str, key: str = "a") -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("raw", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {}, "matchExpressions": []}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "1", "b": "1"}}, False),
        ({"matchLabels": {"empty": ""}}, True),
        ({"matchLabels": {"b": ""}}, False),
        (expression("In", "0", "1"), True),
        (expression("In", "0"), False),
        (expression("In", "", key="b"), False),
        (expression("NotIn", "1"), False),
        (expression("NotIn", "0"), True),
        (expression("NotIn", "", key="b"), True),
        (expression("Exists"), True),
        (expression("Exists", key="b"), False),
        (expression("DoesNotExist"), False),
        (expression("DoesNotExist", key="b"), True),
        ({"matchLabels": {"a": "1"}} | expression("Exists", key="b"), False),
    ],
)
def test_a_label_selector_matches_when_all_of_it_does(raw: Json | None, *, matches: bool) -> None:
    assert of_wire(raw).matches({"a": "1", "empty": ""}) is matches


def test_a_selector_that_is_absent_matches_nothing_of_a_pod_and_everything_of_a_policy() -> None:
    assert of_wire(None) == selectors.NOTHING
    assert not selectors.NOTHING.matches({})
    assert selectors.parse_selector(None, "f") == selectors.EVERYTHING == of_wire({})


def test_selectors_of_one_meaning_are_equal_however_they_are_written() -> None:
    one = {"matchLabels": {"a": "1", "b": "2"}} | expression("NotIn", "y", "x", "y", key="c")
    other = {
        "matchLabels": {"b": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "NotIn", "values": ["x", "y"]},
            {"key": "a", "operator": "In", "values": ["1"]},
            {"key": "b", "operator": "In", "values": ["2", "2"]},
        ],
    }
    assert of_wire(one) == of_wire(other) == selectors.parse_selector(one, "f")
    assert hash(of_wire(one)) == hash(of_wire(other))
    assert of_wire(one) != of_wire({"matchLabels": {"a": "1", "b": "2"}})


LONG = "a" * 64
BAD: list[tuple[Json, str]] = [
    ({"matchLabels": {"": "x"}}, "f.matchLabels: '' is not a label's name"),
    ({"matchLabels": {"a b": "x"}}, "f.matchLabels: 'a b' is not a label's name"),
    ({"matchLabels": {LONG: "x"}}, f"f.matchLabels: '{LONG}' is not a label's name"),
    ({"matchLabels": {"/a": "x"}}, "f.matchLabels: '/a' is not a label's name"),
    ({"matchLabels": {"A/a": "x"}}, "f.matchLabels: 'A/a' is not a label's name"),
    ({"matchLabels": {"a/b/c": "x"}}, "f.matchLabels: 'a/b/c' is not a label's name"),
    ({"matchLabels": {"a": "x y"}}, "f.matchLabels[a]: 'x y' is not a label's value"),
    ({"matchLabels": {"a": LONG}}, f"f.matchLabels[a]: '{LONG}' is not a label's value"),
    ({"matchLabels": {"a": "é"}}, "f.matchLabels[a]: 'é' is not a label's value"),
    (expression("Exists", key="a/"), "f.matchExpressions[0].key: 'a/' is not a label's name"),
    (expression("In", "ok", "-"), "f.matchExpressions[0].values[1]: '-' is not a label's value"),
    (
        expression("Near", "x"),
        'f.matchExpressions[0].operator: "Near" is not one of In, NotIn, Exists, DoesNotExist',
    ),
    (
        expression("Gt", "1"),
        'f.matchExpressions[0].operator: "Gt" is not one of In, NotIn, Exists, DoesNotExist',
    ),
    *(
        (
            one,
            "f.matchExpressions[0].values: must be set for the operators In and NotIn, and for no other operator",
        )
        for one in (expression("In"), expression("NotIn"), expression("Exists", "x"))
    ),
]


@pytest.mark.parametrize(("raw", "error"), BAD)
def test_a_selector_that_no_api_server_takes_is_refused_by_its_field(raw: Json, error: str) -> None:
    with pytest.raises(BadInput) as caught:
        of_wire(raw)
    assert str(caught.value) == error


def test_an_error_about_a_megabyte_is_short() -> None:
    for raw in (
        {"matchLabels": {"x" * 1_000_000: ""}},
        expression("x" * 1_000_000),
        expression("In", "x" * 1_000_000),
    ):
        with pytest.raises(BadInput) as caught:
            of_wire(raw)
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"matchLabels": {1: "a", "b": "c"}}, "f.matchLabels"),
        ({"matchLabels": {"a": 1}}, "f.matchLabels.a"),
        ({"matchLabels": ["a"]}, "f.matchLabels"),
        ({"matchExpressions": {}}, "f.matchExpressions"),
        ({"matchExpressions": ["a"]}, "f.matchExpressions[0]"),
        ({"matchExpressions": [{"operator": "In"}]}, "f.matchExpressions[0].key"),
        ({"matchExpressions": [{"key": "a", "operator": ["In"]}]}, "f.matchExpressions[0].operator"),
        (expression("In") | {}, "f.matchExpressions[0].values"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}, "f.matchExpressions[0].values[0]"),
        ("text", "f"),
    ],
)  # fmt: skip
def test_a_policys_selector_of_wrong_types_is_refused_by_its_field(raw: Any, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        selectors.parse_selector(raw, "f")
    assert caught.value.field == field


words = st.sampled_from(["a", "b", "c"])
requirements = st.one_of(
    st.builds(
        selectors.Requirement,
        words,
        st.sampled_from(["In", "NotIn"]),
        st.lists(words, min_size=1, max_size=2).map(tuple),
    ),
    # Hypothesis would invent values if none were given: it fills all fields of a NamedTuple.
    st.builds(
        selectors.Requirement, words, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())
    ),
)


@given(st.lists(requirements, max_size=3), st.lists(requirements, max_size=2),
       st.dictionaries(words, words))  # fmt: skip
def test_more_requirements_hold_together_with_those_before(
    some: list[selectors.Requirement],
    more: list[selectors.Requirement],
    labels: dict[str, str],
) -> None:
    both = selectors.make_selector(some).add_requirements(more)
    assert both.matches(labels) == all(one.holds(labels) for one in (*some, *more))
    assert both.add_requirements(more) == both == selectors.make_selector((*more, *some))
    assert set(both.keys) == {one.key for one in (*some, *more)}


def node_term(*expressions: tuple[str, str, list[str]], fields: bool = False) -> wire.NodeTerm:
    given_ = [wire.Expression(*one) for one in expressions]
    return wire.NodeTerm(match_fields=given_) if fields else wire.NodeTerm(given_)


def test_terms_of_node_affinity_that_can_match_no_node_are_left_out() -> None:
    """Those that it would take every node to look at for nothing."""
    unreadable = [
        node_term(),
        node_term(("a", "In", [])),
        node_term(("a", "NotIn", [])),
        node_term(("a", "Near", ["x"])),
        node_term(("a", "Gt", [])),
        node_term(("a", "Gt", ["1", "1"])),
        node_term(("a", "Lt", ["one"])),
        node_term(("a", "Exists", []), ("b", "Odd", [])),
        node_term(("a", "Exists", ["x"])),
        node_term(("a", "DoesNotExist", ["x"])),
        node_term(("a", "Gt", ["+07"])),
        node_term(("a", "NotIn", ["a b"])),
        node_term(("a", "In", ["a", "a b"])),
        node_term(("a b", "DoesNotExist", [])),
        node_term(("metadata.name", "Exists", []), fields=True),
        node_term(("metadata.name", "In", ["x", "y"]), fields=True),
        node_term(("metadata.uid", "In", ["x"]), fields=True),
    ]
    good = [
        node_term(("a", "Gt", ["07"])),
        node_term(("a", "Exists", [])),
        node_term(("metadata.name", "NotIn", ["x"]), fields=True),
    ]
    assert selectors.read_node_terms(unreadable) == ()
    assert [selectors.read_usable_term(one) for one in good] == list(
        selectors.read_node_terms([*unreadable, *good])
    )
    assert None not in selectors.read_node_terms(good)


@settings(deadline=None)
@given(st.lists(st.text("abc.-1", max_size=3), max_size=60), st.text("abc.-1", max_size=3))
def test_packed_texts_say_what_the_texts_say(texts: list[str], text: str) -> None:
    packed, plain = pack_texts(texts), sorted(set(texts))
    assert list(packed) == plain
    assert len(packed) == len(plain)
    assert (text in packed) == (text in plain)
    assert None not in packed
    assert packed == pack_texts(reversed(texts))
    assert hash(packed) == hash(pack_texts(reversed(texts)))
    for i, one in enumerate(plain):
        assert packed[i] == one


def test_many_values_take_less_memory_than_one_text_each() -> None:
    texts = [f"value-{i}" for i in range(100)]
    assert estimate_bytes(pack_texts(texts)) < estimate_bytes(tuple(texts)) / 4


def test_selectors_of_few_and_of_many_values_are_ordered_alike() -> None:
    few = {"key": "a", "operator": "In", "values": ["x"]}
    many = {"key": "a", "operator": "In", "values": [f"v{i}" for i in range(30)]}
    one, other = ({"matchExpressions": list(order)} for order in ((few, many), (many, few)))
    assert of_wire(one) == of_wire(other)
    assert not of_wire(one).matches({"a": "v3"})
    assert of_wire({"matchExpressions": [many]}).matches({"a": "v3"})
    assert not of_wire({"matchExpressions": [many]}).matches({"a": "v30"})


@given(
    st.lists(st.text("a0.-_\0 ", max_size=4) | st.sampled_from(["x" * 63, "x" * 64]), max_size=5)
)
def test_values_are_refused_together_as_one_by_one(texts: list[str]) -> None:
    def find_problem(check: Callable[[], None]) -> str:
        try:
            check()
        except BadInput as error:
            return str(error)
        return ""

    def check_each() -> None:
        for i, text in enumerate(texts):
            selectors.check_value(text, f"f[{i}]")

    assert find_problem(lambda: selectors.check_values(texts, "f")) == find_problem(check_each)
