"""Compares one pod with very many rules about pods, such as the affinity terms of all pods on nodes.

Each rule is a record of integers, see ``write_record`` in ``state/counting/records.py``: first the namespaces by name,
then the requirements of namespaces' labels, then those of pods' labels. Texts are 64-bit hashes.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c
from scheduler.schema.handles import Ints1, Ints2

# What a requirement wants of a label, in a record.
IN, NOT_IN, EXISTS, DOES_NOT_EXIST = 0, 1, 2, 3


@kernel
def find_rules(
    words: Ints1,
    starts: Ints1,
    n: int,
    namespace: int,
    there: Ints2,
    labels: Ints2,
    found: Ints1,
) -> int:
    """Write the rules about a pod to ``found``, ascending.

    Args:
        words: the records.
        starts: [≥ n] where the record of each rule starts, -1 for no rule.
        n: so many rules are looked at.
        namespace: the pod's namespace.
        there: [2, k] labels of the namespace: names, ascending, and values.
        labels: [2, m] those of the pod.
        found: [≥ n] written.

    Returns:
        How many rules were found. O(requirements · log labels).
    """
    n_found = 0
    for rule in range(n):
        at = starts[rule]
        if at < 0:
            continue
        end = at + 1 + words[at]
        is_within = _find(words, at + 1, end, namespace) >= 0
        end = _check(words, end, there)
        is_within = is_within or end > 0
        if is_within and _check(words, abs(end), labels) > 0:
            found[n_found] = rule
            n_found += 1
    return n_found


@part
def _check(words: c.Ints, at: int, labels: c.Ints) -> int:
    """Return where the requirements that begin at a word end; negative where the labels do not meet all of them."""
    meets_all = True
    n, at = words[at], at + 1
    for _ in range(n):
        wanted, first, end = words[at + 1], at + 3, at + 3 + words[at + 2]
        label = _find(labels[0], 0, labels.shape[1], words[at])
        if wanted == EXISTS:
            meets_all = meets_all and label >= 0
        elif wanted == DOES_NOT_EXIST:
            meets_all = meets_all and label < 0
        else:
            # Values count only where the label is there; of NotIn its absence is enough.
            is_among = label >= 0 and _find(words, first, end, labels[1, label]) >= 0
            meets_all = meets_all and is_among == (wanted == IN)
        at = end
    return at if meets_all else -at


@part
def _find(texts: c.Ints, first: int, end: int, text: int) -> int:
    """Return where a text stands among ascending texts; -1 if it is not among them."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if texts[middle] < text:
            low = middle + 1
        else:
            high = middle
    return low if low < end and texts[low] == text else -1
