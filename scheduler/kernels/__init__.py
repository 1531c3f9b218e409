"""The only numba: arithmetic over columns, no words, no objects, no clock.

Belongs here: kernels over the bundles of ``schema``. A kernel takes arrays and integers, writes into
arrays it was given and returns an integer. What its numbers mean is told by the room of the same name
above. Does not belong here: strings, dictionaries, policy.

The disk cache is named after a hash of every kernel source: numba does not notice an edit to a
kernel in another file and would go on returning the old answer.
"""

from scheduler.kernels._jit import is_cache_empty

__all__ = ["is_cache_empty"]
