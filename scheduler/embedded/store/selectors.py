"""Label and field selectors in the text form of a query: parsed once per request, matched per object.

The scheduler's own selectors must not be used here: the scheduler is tested against this server.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.embedded.store import events
from scheduler.embedded.store.kinds import Kind
from scheduler.embedded.store.statuses import ApiError, bad_request

Json = dict[str, Any]
Test = Callable[[Json], bool]

_LABEL = re.compile(
    r"""\s*(?:
      !\s*(?P<absent>[^\s!=<>,()]+)
    | (?P<key>[^\s!=<>,()]+)\s*
      (?: (?P<op>==|=|!=|<|>)\s*(?P<value>[^\s!=<>,()]*)
        | (?<=\s)(?P<set>in|notin)\s*\(\s*(?P<values>[^()]*)\)
      )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_FIELD = re.compile(r"^(?P<path>[^=!]+)(?P<op>==|!=|=)(?P<value>.*)$", re.DOTALL)
# Booleans that count as "false" if the JSON leaves them out.
_FALSE_WHEN_ABSENT = frozenset({"spec.hostNetwork", "spec.unschedulable"})


class Selector(NamedTuple):
    """Which objects of a kind a list or watch is about; a namespace or name of None means any."""

    namespace: str | None
    name: str | None
    tests: tuple[Test, ...]

    def matches(self, namespace: str, name: str, body: Json) -> bool:
        """Tell whether an object is selected."""
        if self.namespace is not None and namespace != self.namespace:
            return False
        if self.name is not None and name != self.name:
            return False
        return all(test(body) for test in self.tests)

    def is_everything(self) -> bool:
        """Tell whether everything is selected, so that no object must be looked at."""
        return self.namespace is None and self.name is None and not self.tests


def parse_selector(kind: Kind, namespace: str, labels: str, fields: str) -> Selector:
    """Read the selectors of a request for a kind; a bad one is a 400."""
    tests: list[Test] = []
    name: str | None = None
    for path, negated, value in _split_field_terms(fields):
        if path == "metadata.name" and not negated:
            # The usual case (kubectl wait, kubectl get -w NAME): keys are compared, not bodies.
            if name is not None and name != value:
                tests.append(_match_nothing)
            name = value
            continue
        tests.append(_make_field_test(kind, path, value, negated=negated))
    tests.extend(parse_labels(labels))
    return Selector(namespace or None, name, tuple(tests))


def parse_labels(text: str) -> list[Test]:
    """Read a label selector in its text form."""
    tests: list[Test] = []
    position = 0
    while position < len(text.rstrip()):
        found = _LABEL.match(text, position)
        if found is None or found.end() == position:
            raise _make_unreadable(text, position)
        tests.append(_make_label_test(found))
        position = found.end()
    return tests


def _make_label_test(found: "re.Match[str]") -> Test:
    key, operator = found["absent"] or found["key"], found["op"]
    if operator in {"<", ">"}:
        return _make_number_test(key, operator, found["value"])
    if operator is None and not found["set"]:
        wanted = not found["absent"]
        return lambda body: (key in _read_labels(body)) is wanted
    # Equality is membership in a list of one; an absent label is in no list.
    listed = found["values"].split(",") if found["set"] else [found["value"]]
    values = frozenset(value.strip() for value in listed)
    inside = found["set"] == "in" or operator in {"=", "=="}
    return lambda body: (_read_labels(body).get(key) in values) is inside


def _make_number_test(key: str, operator: str, value: str) -> Test:
    try:
        bound = int(value)
    except ValueError:
        raise bad_request(
            f"unable to parse requirement: values[0][{key}]: Invalid value: {value!r}:"
            " for 'Gt', 'Lt' operators, the value must be an integer"
        ) from None

    def test(body: Json) -> bool:
        try:
            number = int(_read_labels(body)[key])
        except (KeyError, ValueError):
            return False
        return number > bound if operator == ">" else number < bound

    return test


def _read_labels(body: Json) -> Json:
    return body["metadata"].get("labels") or {}


def _make_unreadable(text: str, position: int) -> ApiError:
    return bad_request(f"unable to parse requirement: found '{text[position:]}'")


def _split_field_terms(text: str) -> list[tuple[str, bool, str]]:
    terms = []
    # A comma, equals sign or backslash inside a value is written with a backslash before it.
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        found = _FIELD.match(part)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\([,=\\])", r"\1", found["value"])
        terms.append((found["path"].strip(), found["op"] == "!=", value))
    return terms


def _make_field_test(kind: Kind, path: str, value: str, *, negated: bool) -> Test:
    allowed = path == "metadata.name" or (path == "metadata.namespace" and kind.namespaced)
    if not allowed and path not in kind.fields:
        raise bad_request(f"field label not supported: {path}")
    if kind.from_store is not None:
        path = events.translate_field(path)
    if path == "source" and kind.bucket == "events":
        return lambda body: (events.find_source(body) == value) is not negated
    absent = "false" if path in _FALSE_WHEN_ABSENT else ""
    keys = tuple(path.split("."))

    def test(body: Json) -> bool:
        found: Any = body
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            text = absent
        elif isinstance(found, bool):
            text = "true" if found else "false"
        else:
            text = str(found)
        return (text == value) is not negated

    return test


def _match_nothing(_: Json) -> bool:
    return False
