"""Matches terms about nodes with columns of nodes: what each operator means for a label.

Source: component-helpers' nodeaffinity.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.api import selectors
from scheduler.api.selectors import NodeTerm, Requirement
from scheduler.schema.columns import Flags, Ints
from scheduler.state.nodes import NodeTable


def match_any(terms: tuple[NodeTerm, ...], nodes: NodeTable, rows: Ints) -> Flags:
    """Match rows with several terms: a row must match one of them; an empty list of terms matches nothing."""
    found = np.zeros(rows.size, np.bool_)
    for term in terms:
        found |= match_term(term, nodes, rows)
    return found


def match_term(term: NodeTerm, nodes: NodeTable, rows: Ints) -> Flags:
    """Match rows with one term: a row must meet all of its requirements."""
    result = np.ones(rows.size, np.bool_)
    for requirement in term.labels:
        result &= match_label(requirement, nodes, rows)
    for requirement in term.names:
        named = np.equal(rows, nodes.find_row(requirement.values[0]))
        result &= named if requirement.operator == "In" else ~named
    return result


def match_label(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    """Match rows with one requirement about a label."""
    key, operator, values = requirement
    match operator:
        case "In":
            return match_values(nodes, key, values, rows)
        case "NotIn":
            return ~match_values(nodes, key, values, rows)
        case "Gt" | "Lt":
            return _compare_integers(requirement, nodes, rows)
    present: Flags = nodes.get_label_column(key)[rows] >= 0
    return present if operator == "Exists" else ~present


def match_values(nodes: NodeTable, key: str, values: Iterable[str], rows: Ints) -> Flags:
    """Match the rows whose label has one of these values."""
    # The column comes first, because making it numbers the label's values.
    column = nodes.get_label_column(key)[rows]
    wanted = [n for n in map(nodes.label_values.find, values) if n >= 0]
    if len(wanted) == 1:
        return np.equal(column, wanted[0])
    return np.isin(column, wanted)


def _compare_integers(requirement: Requirement, nodes: NodeTable, rows: Ints) -> Flags:
    """Match rows with Gt or Lt: the label must be an integer, and is compared with the one value."""
    key, operator, values = requirement
    bound = selectors.parse_integer(values[0])
    column = nodes.get_label_column(key)[rows]
    integers, is_integer = nodes.read_label_integers()
    if bound is None or not integers.size:
        return np.zeros(rows.size, np.bool_)
    figures = integers[column]
    passing: Flags = figures > bound if operator == "Gt" else figures < bound
    # Where the label is absent, index -1 reads the last value; ``column >= 0`` excludes these rows.
    return passing & is_integer[column] & (column >= 0)
