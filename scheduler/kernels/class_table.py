"""Rows of nodes by class: a hash table in arrays. Rows of a class are equal in what its owner compares.

A hash only finds the classes to compare with.
"""

from __future__ import annotations

from scheduler.kernels._jit import part
from scheduler.schema.cold import AFTER, BEFORE, N_CLASSES, N_SPARE, Classes

# Fibonacci hashing: 2^32 over the golden ratio.
_FACTOR, _MASK = 2654435769, (1 << 31) - 1


@part
def leave_class(classes: Classes, row: int) -> None:
    """Take a row out of its class; a class ends with its last row."""
    own = classes.of[row]
    before, after = classes.near[BEFORE, row], classes.near[AFTER, row]
    classes.of[row] = classes.near[BEFORE, row] = classes.near[AFTER, row] = -1
    if after >= 0:
        classes.near[BEFORE, after] = before
    if before >= 0:
        classes.near[AFTER, before] = after
        return
    classes.head[own] = after
    if after >= 0:
        return
    # It was the last one: the class goes.
    b = classes.digest[own] & (classes.bucket.size - 1)
    at = classes.bucket[b]
    if at == own:
        classes.bucket[b] = classes.chain[own]
    else:
        while classes.chain[at] != own:
            at = classes.chain[at]
        classes.chain[at] = classes.chain[own]
    classes.spare[classes.counts[N_SPARE]] = own
    classes.counts[N_SPARE] += 1


@part
def find_bucket(classes: Classes, digest: int) -> int:
    """Find the first class that may have a digest; ``Classes.chain`` has the next ones."""
    return int(classes.bucket[digest & (classes.bucket.size - 1)])


@part
def join_class(classes: Classes, row: int, digest: int, own: int) -> None:
    """Put a row into the class ``own``, or into a new one with this digest, -1."""
    if own < 0:
        b = digest & (classes.bucket.size - 1)
        classes.counts[N_SPARE] -= 1
        own = classes.spare[classes.counts[N_SPARE]]
        classes.counts[N_CLASSES] = max(classes.counts[N_CLASSES], own + 1)
        classes.digest[own] = digest
        classes.head[own] = -1
        classes.chain[own] = classes.bucket[b]
        classes.bucket[b] = own
    classes.of[row] = own
    head = classes.head[own]
    if head < 0:
        classes.head[own] = row
        classes.near[BEFORE, row] = classes.near[AFTER, row] = -1
        return
    # Behind the first, of which figures are known.
    after = classes.near[AFTER, head]
    classes.near[BEFORE, row], classes.near[AFTER, row] = head, after
    classes.near[AFTER, head] = row
    if after >= 0:
        classes.near[BEFORE, after] = row


@part
def mix_figure(mixed: int, figure: int) -> int:
    """Return the digest, below 2^31, of a digest and one more figure."""
    # Both factors are below 2^32, the product stays within 63 bits; its high half knows all of both.
    product = ((mixed ^ figure ^ (figure >> 31)) & _MASK) * _FACTOR
    return int((product ^ (product >> 31)) & _MASK)
