"""Label selectors. Only this module knows what each operator means and which requirements are invalid.

A ``Selector`` is a Kubernetes LabelSelector (of pods and namespaces) and is matched against one set of labels.
A ``NodeTerm`` is a NodeSelectorTerm; ``plugins/rules/node_affinity`` matches its requirements against whole columns
of nodes. Both are plain values that can be compared and hashed: two that differ only in order or repetitions are
equal.

Source: apimachinery's labels.Requirement and metav1.LabelSelectorAsSelector, component-helpers' nodeaffinity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler.api import limits, names, values, wire
from scheduler.api.packing import BETWEEN, PackedTexts, pack_texts
from scheduler.errors import BadInput

Labels = Mapping[str, str]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_OPERATORS, "Gt", "Lt")
_WITH_VALUES = frozenset({"In", "NotIn"})
_NODE_NAME = "metadata.name"
# The most characters of a label's name and of its domain, as the API server checks them.
_NAME_MAX, _PREFIX_MAX = 63, 253
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# A regular expression for many joined label values.
_LABEL_VALUE = f"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,{names.LABEL_VALUE_MAX - 2}}}[A-Za-z0-9])?)?"
_LABEL_VALUES = re.compile(f"{_LABEL_VALUE}(?:{BETWEEN}{_LABEL_VALUE})*")
_QUOTED_MAX = 100


class Requirement(NamedTuple):
    """One requirement: a label, an operator, and the values that the label is compared with, sorted."""

    key: str
    operator: str
    values: tuple[str, ...] | PackedTexts = ()

    def holds(self, labels: Labels) -> bool:
        """Whether a set of labels meets the requirement; for the operators of a LabelSelector."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                # This holds also if the label is absent.
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """A LabelSelector: every requirement must hold; made by ``make_selector``.

    Attributes:
        requirements: sorted, none twice; ``matchLabels`` are In with one value.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether a set of labels meets all requirements."""
        # A loop is faster than a generator: thousands of selectors may be matched with one pod.
        for one in self.requirements:  # noqa: SIM110
            if not one.holds(labels):
                return False
        return True

    def add_requirements(self, more: Iterable[Requirement]) -> Selector:
        """Return a selector with more requirements."""
        return make_selector((*self.requirements, *more))

    @property
    def keys(self) -> tuple[str, ...]:
        """The labels that the selector looks at."""
        return tuple(one.key for one in self.requirements)


def make_selector(requirements: Iterable[Requirement]) -> Selector:
    """Make the selector of these requirements, whatever their order."""
    return Selector(tuple(sorted(set(requirements), key=_make_order)))


def _make_order(one: Requirement) -> tuple[str, str, str, tuple[str, ...]]:
    """Make a sort key; any order will do that is the same for equal requirements."""
    if isinstance(one.values, PackedTexts):
        return one.key, one.operator, one.values.joined, ()
    return one.key, one.operator, "", one.values


# An empty LabelSelector selects everything; an absent one selects nothing: no label has one of no values.
EVERYTHING = Selector()
NOTHING = Selector((Requirement("", "In"),))


def parse_selector(raw: Any, field: str) -> Selector:
    """Parse a LabelSelector from JSON of any shape; an absent one selects everything.

    Raises:
        BadInput: this is no LabelSelector; the error names the field.
    """
    selector = values.read_mapping(raw, field)
    expressions = values.read_items(
        selector.get("matchExpressions"), f"{field}.matchExpressions", dict
    )
    labels = values.read_mapping(selector.get("matchLabels"), f"{field}.matchLabels")
    for key, label in labels.items():
        if not isinstance(key, str):
            raise BadInput(f"{field}.matchLabels", f"{key!r} is not a label's name")
        if not isinstance(label, str):
            raise BadInput(f"{field}.matchLabels.{key}", f"{label!r} is not a text")
    return make_selector((
        *(Requirement(key, "In", (label,)) for key, label in labels.items()),
        *(
            _read_requirement(e.get("key"), e.get("operator"), e.get("values"), f"{field}.matchExpressions[{i}]")
            for i, e in enumerate(expressions)
        ),
    ))  # fmt: skip


def read_selector(given: wire.LabelSelector | None, field: str) -> Selector:
    """Read the LabelSelector of a pod's rule; an absent one selects nothing.

    Raises:
        BadInput: an API server would refuse it; the error names the field.
    """
    if given is None:
        return NOTHING
    found = []
    for key, label in (given.match_labels or {}).items():
        check_name(key, f"{field}.matchLabels")
        check_value(label, f"{field}.matchLabels[{key}]")
        found.append(Requirement(key, "In", (label,)))
    for i, expression in enumerate(given.match_expressions or ()):
        where = f"{field}.matchExpressions[{i}]"
        check_name(expression.key, f"{where}.key")
        check_values(expression.values or (), f"{where}.values")
        found.append(
            _read_requirement(expression.key, expression.operator, expression.values, where)
        )
    return make_selector(found)


def _read_requirement(key: Any, operator: Any, wanted: Any, field: str) -> Requirement:
    if not isinstance(key, str) or not key:
        raise BadInput(f"{field}.key", f"{key!r} is not a label's name")
    if operator not in _OPERATORS:
        raise _make_operator_error(operator, field, _OPERATORS)
    found = values.read_items(wanted, f"{field}.values", str)
    if (operator in _WITH_VALUES) != bool(found):
        raise BadInput(
            f"{field}.values",
            "must be set for the operators In and NotIn, and for no other operator",
        )
    return Requirement(key, operator, pack_texts(found))


def check_name(name: str, field: str) -> None:
    """Refuse an invalid name of a label. A name is at most 63 letters, digits and ``-_.``, with or without ``domain/``.

    Raises:
        BadInput: names the field.
    """
    prefix, slash, rest = name.rpartition("/")
    good = len(rest) <= _NAME_MAX and _NAME.fullmatch(rest)
    if slash:
        good = good and len(prefix) <= _PREFIX_MAX and _PREFIX.fullmatch(prefix)
    if not good:
        raise BadInput(field, f"{quote(name)} is not a label's name")


def quote(text: str) -> str:
    """Quote a text in an error, shortened when it is long."""
    return repr(limits.shorten(text, _QUOTED_MAX))


def check_value(value: str, field: str) -> None:
    """Refuse an invalid value of a label. A value is empty, or at most 63 letters, digits and ``-_.``.

    Raises:
        BadInput: names the field.
    """
    if value and (len(value) > names.LABEL_VALUE_MAX or not _NAME.fullmatch(value)):
        raise BadInput(field, f"{quote(value)} is not a label's value")


def check_values(found: Sequence[str], field: str) -> None:
    """Refuse a list with an invalid value of a label, as ``check_value`` does.

    Raises:
        BadInput: the error names the field and the place of the first invalid value.
    """
    joined = BETWEEN.join(found)
    # To check ten thousand values one by one would take ten milliseconds.
    if _LABEL_VALUES.fullmatch(joined) and joined.count(BETWEEN) == max(0, len(found) - 1):
        return
    for i, value in enumerate(found):
        check_value(value, f"{field}[{i}]")


class NodeTerm(NamedTuple):
    """A NodeSelectorTerm that can be read: requirements on labels, and on the node's name; never empty."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()


def read_node_terms(terms: Iterable[wire.NodeTerm]) -> tuple[NodeTerm, ...]:
    """Read the terms that can match a node, in their order.

    An empty term matches nothing, and neither does a term with a requirement that cannot be read: kube-scheduler
    ignores such terms, and the API server refuses most of them.
    """
    return tuple(found for term in terms if (found := read_usable_term(term)) is not None)


def read_usable_term(term: wire.NodeTerm) -> NodeTerm | None:
    """Read a term from its wire form; None for one that matches no node, see ``read_node_terms``."""
    try:
        return read_node_term(term, "")
    except BadInput:
        return None


def read_node_term(term: wire.NodeTerm, field: str) -> NodeTerm | None:
    """Read a term from its wire form; None for an empty one.

    Raises:
        BadInput: a requirement cannot be read; the error names the field.
    """
    labels = [
        read_label_requirement(one, f"{field}.matchExpressions[{i}]")
        for i, one in enumerate(term.match_expressions or ())
    ]
    named = [
        _read_name_requirement(one, f"{field}.matchFields[{i}]")
        for i, one in enumerate(term.match_fields or ())
    ]
    return NodeTerm(tuple(labels), tuple(named)) if labels or named else None


def list_node_names(terms: Sequence[wire.NodeTerm]) -> tuple[str, ...] | None:
    """List the names of the nodes to which the terms bind a pod, sorted; None when a term does not bind by name.

    Whether the rest of a term can be read does not matter. An empty list: the terms contradict themselves.
    """
    found: set[str] = set()
    for term in terms:
        named = [
            set(one.values or ())
            for one in term.match_fields or ()
            if one.key == _NODE_NAME and one.operator == "In"
        ]
        if not named:
            return None
        found |= set.intersection(*named)
    return tuple(sorted(found)) if terms else None


def read_label_requirement(given: wire.Expression, field: str) -> Requirement:
    """Read a requirement on a node's label, as apimachinery's ``labels.NewRequirement`` reads it.

    Raises:
        BadInput: the key, the operator, the number of values, or a value is invalid.
    """
    check_name(given.key, f"{field}.key")
    wanted = tuple(sorted(set(given.values or ())))
    where = f"{field}.values"
    match given.operator:
        case "In" | "NotIn":
            if not wanted:
                raise BadInput(where, "must be set for the operators In and NotIn")
        case "Exists" | "DoesNotExist":
            if wanted:
                raise BadInput(where, "must not be set for the operators Exists and DoesNotExist")
        case "Gt" | "Lt":
            if len(given.values or ()) != 1 or parse_integer(wanted[0]) is None:
                raise BadInput(where, "must be one whole number for the operators Gt and Lt")
        case _:
            raise _make_operator_error(given.operator, field, _NODE_OPERATORS)
    # This is true for numbers too: a number with a sign in front is an invalid value.
    check_values(given.values or (), where)
    return Requirement(given.key, given.operator, wanted)


def _read_name_requirement(given: wire.Expression, field: str) -> Requirement:
    """Read an entry of ``matchFields``, which allows only ``metadata.name``, with In or NotIn of one value."""
    if given.key != _NODE_NAME:
        raise BadInput(f"{field}.key", f"{quote(given.key)} is not {_NODE_NAME}")
    if given.operator not in _WITH_VALUES:
        raise _make_operator_error(given.operator, field, ("In", "NotIn"))
    wanted = tuple(given.values or ())
    if len(wanted) != 1:
        raise BadInput(f"{field}.values", "must be one name")
    return Requirement(given.key, given.operator, wanted)


def _make_operator_error(given: Any, field: str, known: Sequence[str]) -> BadInput:
    said = limits.shorten(str(given), _QUOTED_MAX)
    return BadInput(f"{field}.operator", f'"{said}" is not one of {", ".join(known)}')


def parse_integer(text: str) -> int | None:
    """Parse an integer as Go's ParseInt(text, 10, 64): without spaces and underscores; None for any other text."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    if not (body.isascii() and body.isdigit()) or len(body.lstrip("0")) > 19:
        return None
    number = int(body.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number if -(2**63) <= number < 2**63 else None


def meets_requirement(one: Requirement, labels: Labels) -> bool:
    """Whether a set of labels meets a requirement; for the operators of a NodeSelectorTerm."""
    if one.operator not in {"Gt", "Lt"}:
        return one.holds(labels)
    return one.key in labels and is_beyond(one.operator, labels[one.key], one.values[0])


def is_beyond(operator: str, text: str, bound: str) -> bool:
    """Whether a text is a whole number that is greater (Gt) or less (Lt) than another."""
    found, limit = parse_integer(text), parse_integer(bound)
    if found is None or limit is None:
        return False
    return found > limit if operator == "Gt" else found < limit
