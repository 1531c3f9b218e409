"""Selectors as text: what kubectl writes is read as the API server reads it, and what is no selector is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import selectors
from scheduler.api.selector_text import parse_text
from scheduler.embedded.store import selectors as twin
from scheduler.errors import BadInput
from tests import slices

KEYS = st.sampled_from(("a", "b", "example.com/c"))
VALUES = st.sampled_from(("", "x", "y", "in", "z-1"))
BLANKS = st.sampled_from(("", " "))


@st.composite
def parts(draw: st.DrawFn) -> str:
    key, blank = draw(KEYS), draw(BLANKS)
    match draw(st.sampled_from(("=", "==", "!=", "in", "notin", "", "!"))):
        case "in" | "notin" as word:
            wanted = f",{blank}".join(draw(st.lists(VALUES, min_size=1, max_size=3)))
            return f"{blank}{key} {word} ({wanted}){blank}"
        case "" | "!" as sign:
            return f"{blank}{sign}{key}{blank}"
        case sign:
            return f"{blank}{key}{blank}{sign}{blank}{draw(VALUES)}"


@settings(max_examples=slices.count_examples(300), deadline=None)
@given(
    text=st.lists(parts(), min_size=1, max_size=3).map(",".join),
    labels=st.dictionaries(KEYS, VALUES, max_size=3),
)
def test_a_selector_selects_what_the_api_server_selects(text: str, labels: dict[str, str]) -> None:
    body = {"metadata": {"labels": labels}}
    assert parse_text(text, "it").matches(labels) == all(
        one(body) for one in twin.parse_labels(text)
    )


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_selects_nothing(text: str) -> None:
    assert parse_text(text, "it") == selectors.NOTHING


@pytest.mark.parametrize(
    "text", ["=", "a=b=c", "a b", "a in", "a in b", "a in (b", "a,", ",", "!", "a in (b))", "-a=b", "a=-b", "a/b/c", "a=b;c=d", "a>1"]
)  # fmt: skip
def test_what_is_no_selector_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadInput, match="it: "):
        parse_text(text, "it")
