"""A count that refuses every node, for pods whose claims alone keep them off all nodes."""

from __future__ import annotations

import numpy as np

from scheduler.schema.columns import Ints


class Everywhere:
    """A count that is always 1 on every row."""

    version = 0

    def list_by_row(self, capacity: int) -> Ints:
        """[capacity] ones."""
        return np.ones(capacity, np.int64)


EVERYWHERE = Everywhere()
