"""The only numba: arithmetic over columns, no words, no objects, no clock.

Belongs here: kernels over the handles of ``schema``. Python calls a ``kernel`` with two to five handles, arrays and
numbers; it writes into arrays that it was given and returns a number. What its numbers mean is told by the room of
the same name above. A ``part`` is called by kernels alone. Does not belong here: strings, dictionaries, policy.

The disk cache is named after a hash of every kernel source: numba does not notice an edit to a
kernel in another file and would go on returning the old answer.
"""
