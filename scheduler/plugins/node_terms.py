"""Terms about nodes against columns of nodes: what each operator means for a label.

Source: component-helpers' nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.api import selectors
from scheduler.api.selectors import NodeTerm, Requirement
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def any_of(terms: tuple[NodeTerm, ...], nodes: NodeTable, rows: Ints) -> Flags:
    """Rows that match one of the terms; an empty list of terms matches nothing."""
    found = np.zeros(rows.size, np.bool_)
    for term in terms:
        found |= matches(term, nodes, rows)
    return found


def matches(term: NodeTerm, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows that meet all requirements of a term."""
    result = np.ones(rows.size, np.bool_)
    for requirement in term.labels:
        result &= label(requirement, nodes, rows)
    for requirement in term.names:
        named = np.equal(rows, nodes.row_of(requirement.values[0]))
        result &= named if requirement.operator == "In" else ~named
    return result


def label(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    """Rows whose labels meet a requirement."""
    key, operator, values = requirement
    match operator:
        case "In":
            return has_one_of(nodes, key, values, rows)
        case "NotIn":
            return ~has_one_of(nodes, key, values, rows)
        case "Gt" | "Lt":
            return _compares(requirement, nodes, rows)
    present: Flags = nodes.get_label_column(key)[rows] >= 0
    return present if operator == "Exists" else ~present


def has_one_of(nodes: NodeTable, key: str, values: Iterable[str], rows: Ints) -> Flags:
    """Rows that have one of these values of a label."""
    # The column first: making it is what numbers the label's values.
    column = nodes.get_label_column(key)[rows]
    wanted = [n for n in map(nodes.label_values.find, values) if n >= 0]
    if len(wanted) == 1:
        return np.equal(column, wanted[0])
    return np.isin(column, wanted)


def _compares(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    """Gt and Lt: integer comparison of the label with the one value; a label that is none fails."""
    key, operator, values = requirement
    bound = selectors.integer(values[0])
    column = nodes.get_label_column(key)[rows]
    integers, is_integer = nodes.read_label_integers()
    if bound is None or not integers.size:
        return np.zeros(rows.size, np.bool_)
    figures = integers[column]
    passing: Flags = figures > bound if operator == "Gt" else figures < bound
    # Where the label is absent, -1 reads the last value: that says nothing.
    return passing & is_integer[column] & (column >= 0)
