"""Selectors: what they tell their callers, and that no text holds anything up or breaks it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.devices.cel import (
    BROKEN,
    CompileError,
    EvaluationError,
    SelectedDevice,
    Version,
    compile_selector,
    read_quantity,
)
from scheduler.devices.cel.matching import Pattern
from scheduler.devices.cel.patterns import PatternError
from scheduler.devices.cel.running import Run

DEVICE = SelectedDevice(
    "gpu.example.com",
    {
        "type": "gpu",
        "cores": 132,
        "version": Version("580.126.20"),
        "resource.kubernetes.io/numaNode": 0,
        "links": ("a", "b"),
    },
    {"memory": read_quantity("80Gi")},
)


def put(text: str) -> str:
    """Return a selector's answer, or the error that it ends in."""
    try:
        return str(compile_selector(text).matches(DEVICE))
    except (CompileError, EvaluationError) as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'",
        "device.attributes['gpu.example.com'].version.isGreaterThan(semver('580.0.0'))",
        "device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) >= 0",
        "device.attributes['resource.kubernetes.io'].numaNode in [0, 1]",
        "'a' in device.attributes['gpu.example.com'].links",
        "!device.allowMultipleAllocations",
        "device.attributes['nobody.example.com'].?type.orValue('none') == 'none'",
    ],
)
def test_a_selector_matches(text: str) -> None:
    assert compile_selector(text).matches(DEVICE)


def test_a_name_without_a_domain_is_the_drivers() -> None:
    text = (
        "device.attributes['gpu.example.com'].type == device.attributes['gpu.example.com']['type']"
    )
    assert compile_selector(text).matches(DEVICE)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (BROKEN, "attribute odd: unsupported attribute value"),
        (
            Version("1.2"),
            "attribute odd: parse semantic version: No Major.Minor.Patch elements found",
        ),
    ],
)
def test_one_attribute_without_a_proper_value_fails_every_selector(
    value: Version, why: str
) -> None:
    device = SelectedDevice("gpu.example.com", {"type": "gpu", "odd": value}, {})
    with pytest.raises(EvaluationError, match=re.escape(why)):
        compile_selector("true").matches(device)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("true", []),
        (
            "device.driver == 'a' && device.capacity['a'].memory.sign() > 0".replace(
                ".sign()", ".asInteger()"
            ),
            [],
        ),
        ("device.attributes['a'].b == device.attributes['c']['d']", ["a/b", "c/d"]),
        (
            "has(device.attributes['a'].b) || device.attributes['a'].?c.orValue(true)",
            ["a/b", "a/c"],
        ),
        ("device.attributes[?'a'].b.orValue(true)", ["a/b"]),
        ("cel.bind(d, device.attributes['a'], d.b && d['c'])", ["a/b", "a/c"]),
        ("device.attributes['a'].b.exists(x, x == device.attributes['a'].c)", ["a/b", "a/c"]),
        ("device.attributes['a'].b[device.attributes['c'].d]", ["a/b", "c/d"]),
        ("[1].all(device, device == 1)", []),
    ],
)
def test_the_attributes_that_a_selector_mentions(text: str, attributes: list[str]) -> None:
    assert compile_selector(text).attributes == frozenset(attributes)


@pytest.mark.parametrize(
    "text",
    [
        "device.attributes.all(d, d != 'a')",
        "'a' in device.attributes",
        "size(device.attributes['a']) > 0",
        "'b' in device.attributes['a']",
        "device.attributes[device.driver].a",
        "device.attributes['a'][device.driver]",
        "cel.bind(d, device, d.driver == 'a')",
        "cel.bind(d, device.attributes['a'], d.exists(n, n == 'b'))",
        "device == device",
    ],
)
def test_a_selector_that_may_look_at_any_attribute_says_so(text: str) -> None:
    assert compile_selector(text).attributes is None


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000000000).size() > 0",
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
        "cel.bind(a, lists.range(1000), " * 30 + "a" + ".map(x, a + a))" * 30 + ".size() > 0",
        "".join(f"cel.bind(v{i + 1}, v{i} + v{i}, " for i in range(1, 40)).replace(
            "v1 + v1", "'ab' + 'ab'", 1
        )
        + "v40 == ''"
        + ")" * 39,
        "".join(f"cel.bind(v{i + 1}, [v{i}, v{i}], " for i in range(1, 40)).replace(
            "[v1, v1]", "[[1], [1]]", 1
        )
        + "v40 == v40"
        + ")" * 39,
        "cel.bind(a, 'aaaaaaaaaa'.replace('a', 'aaaaaaaaaaaaaaaaaaaa'), a.replace('a', a).replace('a', a) == '')",
        "lists.range(1000).map(x, string(x)).join(',').replace('', 'bbbbbbbbbbbbbbbbbbbbbb').matches('(a*)*(b*)*c')",
        "lists.range(3000).all(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a|a?)+$' + 'b'))",
        "lists.range(1000).distinct().size() == 1 || true",
        "lists.range(1000).map(x, -x).sort().size() == 1 && lists.range(100000).sort().size() > 0",
        "'%s'.format([lists.range(900000)]).size() > 0",
    ],
)
def test_a_text_that_costs_too_much_ends(text: str) -> None:
    """Upstream takes minutes for some, or all memory."""
    told = put(text)
    assert told in {"True", "False"} or "cost limit exceeded" in told or "recursion" in told


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "true" + ")" * 5000,
        "[" * 5000 + "]" * 5000,
        "!" * 50000 + "true",
        "-" * 50000 + "1 == 1",
        "true" + " && true" * 10000,
        "1" + " + 1" * 20000 + " == 1",
        "device" + ".attributes" * 8000,
        "device.attributes" + "['a']" * 8000,
        "true ? true : " * 5000 + "true",
        "optional.of(1)" + ".optMap(x, x)" * 60 + ".hasValue()",
        "optional.of(1)" + ".optMap(x, x)" * 2000 + ".hasValue()",
        "[1]" + ".map(x, x)" * 2000 + " == [1]",
        "'a'.matches('" + "(" * 3000 + "a" + ")" * 3000 + "')",
        "'a'.matches('" + "(a{1000}){1000}" + "')",
        "'a'.matches('" + "((a{30}){30}){30}" + "')",
        "'" + "a" * 99_990 + "' == ''",
        "'" + "a" * 200_000 + "' == ''",
        "semver('" + "9" * 50_000 + ".0.0').major() > 0",
        "quantity('1e" + "9" * 50_000 + "').isInteger()",
        "quantity('" + "9" * 50_000 + "').isInteger()",
        "int('" + "9" * 50_000 + "') > 0",
        "device.driver + '9' == '' || int(device.driver + '9') > 0",
        "9" * 50_000 + " > 0",
        "'%." + "9" * 5000 + "f'.format([1.0]) == ''",
        "ip('" + "1." * 20_000 + "').isLoopback()",
        "url('https://" + "a." * 20_000 + "').getHost() == ''",
        "\x00",
        "'\ud800' == ''",
        "\u2028",
        "// ",
        "",
    ],
)
def test_an_odd_text_gets_an_answer_or_an_error_of_its_own(text: str) -> None:
    assert put(text)


@pytest.mark.parametrize(
    "write",
    [
        lambda n: "(" * n + "true" + ")" * n,
        lambda n: "size(string(" * (n // 2) + "1" + "))" * (n // 2) + " > 0",
        lambda n: "[1].all(x, " * n + "true" + ")" * n,
        lambda n: "optional.of(1).optMap(x, " * n + "x" + ")" * n + ".hasValue()",
        lambda n: "dyn([" * n + "1" + "])" * n + ".includes(1) || true",
        lambda n: f"cel.bind(a, {'[' * n}1{']' * n}, a == a)",
        lambda n: f"'%s'.format([{'[' * n}1{']' * n}]).size() > 0",
    ],
)
def test_as_deep_as_an_expression_may_be_leaves_room_for_the_callers(
    write: Callable[[int], str],
) -> None:
    """Python allows a thread a thousand calls within calls."""
    deepest = max(n for n in range(1, 100) if "recursion" not in put(write(n)))
    here = len(inspect.stack(0))
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(here + 600)
    try:
        told = put(write(deepest))
    finally:
        sys.setrecursionlimit(before)
    assert deepest > 20
    assert told == "True"


_PIECES = st.sampled_from(
    [
        "device",
        ".",
        "driver",
        "attributes",
        "['a']",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "?",
        ":",
        "+",
        "-",
        "!",
        "==",
        "<",
        "&&",
        "||",
        "in",
        "true",
        "1",
        "1u",
        "1.5",
        "'a'",
        "b'a'",
        "null",
        "has(",
        "all(",
        "map(",
        "x",
        "cel.bind(",
        "optional.of(",
        ".?",
        "[?",
        "matches(",
        '"(',
        "\\",
        "`",
        "#",
        "//",
        "size(",
        "type(",
        "dyn(",
        "'''",
        "\n",
        "é",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_any_text_gets_an_answer_or_an_error_of_its_own(text: str) -> None:
    assert put(text)


_ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", r"\w", "^", "$", r"\b"])


def _combine(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Patterns that both engines read alike: Python's repeats nothing else than Go's where no part can be empty."""
    return st.one_of(
        st.lists(part, min_size=1, max_size=3).map("".join),
        st.lists(part, min_size=2, max_size=3).map(lambda ways: f"({'|'.join(ways)})"),
        st.tuples(
            st.sampled_from(["a", "b", "[ab]", "."]),
            st.sampled_from(["*", "+", "?", "{2}", "*?", "{1,2}"]),
        ).map("".join),
    )


@given(
    st.recursive(_ATOMS, _combine, max_leaves=6),
    st.text(alphabet="abc d", max_size=12),
)
def test_patterns_find_what_pythons_own_find(pattern: str, text: str) -> None:
    run = Run(None, 0, 10**9)
    ours = Pattern(pattern)
    theirs = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    found = theirs.search(text)
    ours._fast = None
    assert ours.search(run, text, 0) == (found.span() if found else None)
    fast = Pattern(pattern)
    assert fast.matches(run, text) == (found is not None)


def test_a_pattern_is_searched_for_in_time_that_grows_with_the_text() -> None:
    """Python's own would take longer than anybody lives."""
    run = Run(None, 0, 10**9)
    assert not Pattern("(a+)+(a|aa)+$").matches(run, "a" * 200 + "b")
    assert run.work < 10_000


def test_a_pattern_that_is_none_says_why() -> None:
    with pytest.raises(
        PatternError, match=re.escape("error parsing regexp: missing closing ): `(a`")
    ):
        Pattern("(a")


def test_what_is_wrong_is_shown_with_its_place() -> None:
    with pytest.raises(CompileError) as wrong:
        compile_selector("true &&\n  nosuch")
    assert wrong.value.text == (
        "compilation failed: ERROR: <input>:2:3: undeclared reference to 'nosuch' (in container '')\n"
        " |   nosuch\n"
        " | ..^"
    )
    assert "\n" not in wrong.value.problem


def test_a_budget_bounds_what_an_evaluation_costs() -> None:
    selector = compile_selector("[1, 2, 3].all(x, x > 0)")
    assert selector.matches(DEVICE, 100)
    with pytest.raises(EvaluationError, match="operation cancelled: actual cost limit exceeded"):
        selector.matches(DEVICE, 10)
