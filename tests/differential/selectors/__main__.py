"""Random expressions about a device, put to Kubernetes' judge and to ours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.controlplane import build
from tests.differential.selectors import compare, oracle


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 1 if any expression differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.selectors", description=__doc__
    )
    parser.add_argument("--cases", type=int, default=20_000, help="how many expressions")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other expressions")
    chosen = parser.parse_args(arguments)
    build.ensure(oracle.NAME)
    found = compare.compare(chosen.seed, chosen.cases)
    for difference in found.differences:
        print(difference)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(found.kinds.items()))
    print(
        f"{chosen.cases} expressions: {kinds}; {len(found.differences)} differ;"
        f" {found.varied} have other answers each time, {found.broken} break upstream"
    )
    return bool(found.differences)


if __name__ == "__main__":
    raise SystemExit(main())
