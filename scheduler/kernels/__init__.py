"""The only numba: arithmetic over columns, no words, no objects, no clock.

Belongs here: kernels and the layout of the arrays they read (``columns``). A kernel takes arrays
and integers, writes into arrays it was given and returns an integer. What its numbers mean is
told by the room of the same name above. Does not belong here: strings, dictionaries, policy.

Decision (2026-11): the NamedTuples of arrays live here and not in ``state``, because kernels are
below ``state`` and their signatures name these types; ``state`` owns and grows the arrays.

The disk cache is named after a hash of every kernel source: numba does not notice an edit to a
kernel in another file and would go on returning the old answer.
"""
