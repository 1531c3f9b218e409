"""What the GPUs that are known here can be cut into by MIG, for nodes that are made up: of traces and of the embedded cluster.

A real node's plugin reports it. Per profile: MiB, slices, and the places on the card's slots of memory. The percentage of
cores of a profile is that of its multiprocessors, rounded up, as HAMi's plugin computes it.

Source: NVIDIA's MIG user guide, the tables of profiles and of their placements; only profiles that HAMi v2.10 allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.api.cards import Part


class CutModel(NamedTuple):
    """A GPU in MIG mode: its MiB, and its parts, in the order in which they are to be tried."""

    mib: int
    parts: tuple[Part, ...]


class _Profile(NamedTuple):
    name: str
    mib: int
    cores: int
    slices: int
    size: int
    starts: tuple[int, ...]


def _make_model(mib: int, *profiles: _Profile) -> CutModel:
    # Small and middle profiles are tried from the end of the card, see api/hami_mig.py.
    return CutModel(
        mib,
        tuple(
            Part(one.name, one.mib, one.cores, start, one.size, one.slices)
            for one in profiles
            for start in sorted(one.starts, reverse=one.name[:2] in ("1g", "3g"))
        ),
    )


_SEVEN, _THREE, _TWO = (0, 1, 2, 3, 4, 5, 6), (0, 2, 4), (0, 4)

CUT_MODELS: Mapping[str, CutModel] = {
    "A30-24GB": _make_model(
        24_576,
        _Profile("1g.6gb", 5952, 25, 1, 1, (0, 1, 2, 3)),
        _Profile("2g.12gb", 12_032, 50, 2, 2, (0, 2)),
        _Profile("4g.24gb", 24_192, 100, 4, 4, (0,)),
    ),
    "A100-40GB": _make_model(
        40_960,
        _Profile("1g.5gb", 4864, 15, 1, 1, _SEVEN),
        _Profile("2g.10gb", 9856, 29, 2, 2, _THREE),
        _Profile("3g.20gb", 19_968, 43, 3, 4, _TWO),
        _Profile("7g.40gb", 40_192, 100, 7, 8, (0,)),
    ),
    "A100-80GB": _make_model(
        81_920,
        _Profile("1g.10gb", 9728, 15, 1, 1, _SEVEN),
        _Profile("2g.20gb", 19_968, 29, 2, 2, _THREE),
        _Profile("3g.40gb", 40_192, 43, 3, 4, _TWO),
        _Profile("7g.80gb", 80_896, 100, 7, 8, (0,)),
    ),
    "H100-80GB": _make_model(
        81_559,
        _Profile("1g.10gb", 9856, 13, 1, 1, _SEVEN),
        _Profile("2g.20gb", 20_096, 25, 2, 2, _THREE),
        _Profile("3g.40gb", 40_448, 46, 3, 4, _TWO),
        _Profile("7g.80gb", 81_152, 100, 7, 8, (0,)),
    ),
}
