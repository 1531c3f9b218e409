"""Writes rules about pods, and pods, as records of integers that a kernel compares.

A record is: the number of namespaces and their names, ascending; the requirements of namespaces' labels; the
requirements of pods' labels. Requirements are: their number, and for each the name of the label, what is wanted of it,
the number of values, and the values, ascending.

A record has Python's hash instead of a text: 64 bits of SipHash with a key that no tenant knows. Two texts of a
million have the same hash in one of thirty million runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels, Selector
from scheduler.kernels import rules
from scheduler.schema.columns import Ints

_WANTED = {
    "In": rules.IN,
    "NotIn": rules.NOT_IN,
    "Exists": rules.EXISTS,
    "DoesNotExist": rules.DOES_NOT_EXIST,
}


def write_record(peers: Peers) -> list[int]:
    """Write the record of the rule that is about these pods."""
    names = sorted(map(hash, peers.namespaces))
    return [
        len(names),
        *names,
        *_write_requirements(peers.namespace_selector),
        *_write_requirements(peers.selector),
    ]


def _write_requirements(selector: Selector) -> list[int]:
    written = [len(selector.requirements)]
    for one in selector.requirements:
        values = sorted(map(hash, one.values))
        written += (hash(one.key), _WANTED[one.operator], len(values), *values)
    return written


class ComparedPod(NamedTuple):
    """A pod as ``rules.find_rules`` compares it.

    Attributes:
        namespace: the hash of its name.
        there: [2, n] the labels of the namespace: names, ascending, and values.
        labels: [2, n] the labels of the pod, likewise.
    """

    namespace: int
    there: Ints
    labels: Ints


def write_pod(namespace: str, there: Labels, labels: Labels) -> ComparedPod:
    """Write the record of a pod in a namespace with the labels ``there``."""
    return ComparedPod(hash(namespace), write_labels(there), write_labels(labels))


def write_labels(labels: Labels) -> Ints:
    """Return [2, n] the hashes of labels: of their names, ascending, and of their values."""
    pairs = sorted((hash(key), hash(value)) for key, value in labels.items())
    return np.array(pairs, np.int64).reshape(-1, 2).T.copy()
