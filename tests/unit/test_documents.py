"""YAML and JSON of files, as kubectl reads them: words, keys, merges, encodings, and one document beside others."""

import codecs
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.documents import reading, scalars, writing
from scheduler.documents.bounds import Unreadable
from tests.unit import yaml_words


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("yes Yes YES on On ON true True TRUE", True),
        ("no No NO off Off OFF false False FALSE", False),
        ("~ null Null NULL", None),
        ("15 +15 017 0o17 0xF 0b1111 1_5 15.0 1.5e1 15e0 .15e2", 15),
        ("08 8. 0_10", 8),
        ("1000 1e3 1E3 1_000 1.e3", 1000),
        ("-5 -05 -0b101 -5.0", -5),
        (".5 0.5 0.5_0 .5_0 5e-1", 0.5),
        ("18446744073709551615", 18446744073709551615.0),
    ],
)
def test_words_are_values(words: str, value: Any) -> None:
    for word in words.split():
        found = reading.read_first(f"a: {word}")["a"]
        assert (found, type(found)) == (value, type(value)), word


@pytest.mark.parametrize(
    "word",
    [
        "tRUE",
        "nULL",
        "22:30",
        "23:45:10",
        "-1:30",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "=",
        "=~",
        "'!='",
        "==",
        "4Gi",
        "100m",
        "1e",
        "0b2",
        "0x",
        "0o8",
        "_1",
        "1e400",
        ".",
        "+",
        "0x1_G",
        "<<",
        "<<x",
        "NaN",
        "inf",
    ],
)
def test_what_other_readers_take_for_more_is_text(word: str) -> None:
    assert reading.read_first(f"a: {word}") == {"a": word.strip("'")}
    assert reading.read_first(f"a: [{word}]") == {"a": [word.strip("'")]}


def test_keys_become_text_as_json_needs_them() -> None:
    text = "{1: a, y: b, 0x10: c, 1.5: d, 1e6: e, 08: f, 2001-01-01: g, 0.00001: h}"
    assert list(reading.read_first(text)) == [
        "1",
        "y",
        "16",
        "1.5",
        "1e+06",
        "8",
        "2001-01-01",
        "1e-05",
    ]


@pytest.mark.parametrize("text", ["{~: a}", "{? [a] : b}", "{? {a: b} : c}", "a: .nan", "a: .inf", "a: !!int x", "{<<: 3}", "a: *b"])  # fmt: skip
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        reading.read_first(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, <<: {a: 2, b: 3}}", {"a": 2, "b": 3}),
        ("{<<: {a: 2, b: 3}, a: 1}", {"a": 1, "b": 3}),
        ("{<<: [{a: 1}, {a: 2, c: 4}]}", {"a": 1, "c": 4}),
        ("{'<<': {a: 1}}", {"<<": {"a": 1}}),
        ("{a: 1, a: 2}", {"a": 2}),
        ("{a: &x {b: 1}, c: {<<: *x, d: *x}}", {"a": {"b": 1}, "c": {"b": 1, "d": {"b": 1}}}),
        ("{a: !foo bar, b: !!str 5, c: !!binary aGk=, d: ! 1, e: !!int '7'}", {"a": "bar", "b": "5", "c": "hi", "d": "1", "e": 7}),
    ],
)  # fmt: skip
def test_merges_tags_and_keys_that_come_twice(text: str, value: Any) -> None:
    assert reading.read_first(text) == value


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_a_mark_at_the_start_names_the_encoding(mark: bytes, encoding: str) -> None:
    """PowerShell's ``>`` writes UTF-16."""
    assert reading.decode(mark + "kind: Ünode\r\n".encode(encoding)) == "kind: Ünode\r\n"
    with pytest.raises(UnicodeError):
        reading.decode(b"\xff")


def test_one_document_that_cannot_be_read_hides_no_other_and_is_told_by_its_lines() -> None:
    text = "# head\n---\na: 1\n---\nb: [\n---\n---\nc: {{ .Values.x }}: d\n--- # more\nd: 4\n"
    found = list(reading.read_all(text))
    assert [(one.number, one.value) for one in found] == [
        (1, {"a": 1}), (2, None), (3, None), (4, None), (5, {"d": 4}),
    ]  # fmt: skip
    problems = [str(one.problem) for one in found if one.problem]
    assert len(problems) == 2
    assert "line 5" in problems[0] or "line 6" in problems[0]
    assert "helm template" in problems[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n b: [1,\n", "line 2, column 3: a second `: ` in one line: "),
        ("a: {b: 1\nc: 2\n", "line 2, column 2: what is opened in line 1 lacks a comma, or its } at the end"),
        ("a: [1, 2}\n", "line 1, column 9: what is opened in line 1 lacks a comma, or its ] at the end"),
        ("a:\n  b: 1\n c: 2\n", "line 3, column 2: this is no `key: value` of the map that begins in line 1: "),
        ("- a\nb: c\n", "line 2, column 1: this is no `- item` of the list that begins in line 1: "),
        ("a: b: c\n", "line 1, column 5: a second `: ` in one line: put the value in quotes"),
        ("a: 1\nb\n", "line 3, column 1: a key without a `:` after it"),
        ("a:\n\t- b\n", "line 2, column 1: a tab: indent with spaces"),
        ("a: @x\n", "line 1, column 4: no value begins with `@`: put it in quotes"),
        ('a: 1\nb: "x\n', "the quote of line 2 is not closed"),
        ('a: "\\q"\n', "line 1, column 5: in double quotes a backslash begins an escape"),
        ("a: - b\n", "line 1, column 4: a list may not begin here"),
        ("a: [\n", "a value is missing here, or a `[` or `{` before it has no end"),
        ("a: 1\nb: *x\n", "line 2, column 4: `*x` refers to nothing: no `&x` stands before it"),
    ],
)  # fmt: skip
def test_what_is_no_yaml_is_told_by_its_line_without_words_of_a_parser(
    text: str, said: str
) -> None:
    (found,) = reading.read_all(text)
    problem = str(found.problem)
    assert said in problem
    for jargon in ("while", "unicode string", "expected", "token", "scalar", "mapping", "anchor"):
        assert jargon not in problem


def test_a_template_of_helm_is_told_to_be_one_and_nothing_else() -> None:
    said = "is a template of Helm: give what `helm template` prints"
    for text in (
        "metadata:\n  name: {{ .Release.Name }}\n",
        "{{- if .Values.x }}\na: 1\n{{- end }}\n",
        "a:\n  {{- toYaml .Values.a | nindent 2 }}\n",
    ):
        (found,) = reading.read_all(text)
        assert str(found.problem) == said
    # Braces of others are no sign of Helm.
    (found,) = reading.read_all("a: {{inputs.x}}: b\n")
    assert "Helm" not in str(found.problem)


def test_json_documents_may_follow_each_other_and_directives_belong_to_what_follows() -> None:
    assert [one.value for one in reading.read_all('{"a": 1}\n{"b": 2} {"c": 3}')] == [
        {"a": 1}, {"b": 2}, {"c": 3},
    ]  # fmt: skip
    assert [one.value for one in reading.read_all("%YAML 1.1\n---\na: 1\n...\n---\nb: 2\n")] == [
        {"a": 1}, {"b": 2},
    ]  # fmt: skip
    assert reading.read_first("") is None


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.sampled_from([word.strip("'\"") for word in yaml_words.WORDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(yaml_words.WORDS), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(), values, max_size=3))
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    assert reading.read_first(writing.dump(value)) == value
    assert reading.read_first(json.dumps(value)) == value


def test_letters_that_kubectl_takes_for_true_and_false_are_text_and_written_in_quotes() -> None:
    assert reading.read_first("{y: n, a: [Y, N]}") == {"y": "n", "a": ["Y", "N"]}
    assert writing.dump({"y": "n", "a": "yy"}) == "'y': 'n'\na: yy\n"


def test_without_the_parser_in_c_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # The one in Python takes halves of characters.
    texts = [text for text in yaml_words.texts() if r"\ud800" not in text]
    fast = [_read(text) for text in texts]
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert [_read(text) for text in texts] == fast


def _read(text: str) -> Any:
    try:
        return reading.read_first(text)
    except Unreadable:
        return "unreadable"


def test_alike_words_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump of megabytes has few that differ."""
    looked = []
    resolved = scalars.resolve

    def look(text: str) -> Any:
        looked.append(text)
        return resolved(text)

    monkeypatch.setattr(scalars, "resolve", look)
    found = reading.read_first("\n".join(["- {name: x, cpu: 1, on: yes}"] * 1000))
    assert found == [{"name": "x", "cpu": 1, "true": True}] * 1000
    assert len(looked) == 6
