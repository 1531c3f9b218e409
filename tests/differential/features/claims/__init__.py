"""ResourceClaims: what their devices are, and what pods request of them.

``supply`` has slices, classes and taint rules; ``requests`` what a claim requests; ``features`` puts both into worlds.
"""

from tests.differential.features.claims.features import FEATURES

__all__ = ["FEATURES"]
