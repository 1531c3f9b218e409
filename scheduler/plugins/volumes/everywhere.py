"""A figure that refuses every node: of what a pod's claims alone keep it from."""

from __future__ import annotations

import numpy as np

from scheduler.schema.columns import Ints


class Everywhere:
    """One on every row, for ever."""

    version = 0

    def by_row(self, capacity: int) -> Ints:
        """[capacity] ones."""
        return np.ones(capacity, np.int64)


EVERYWHERE = Everywhere()
