"""Random worlds asked of Kubernetes' allocator of devices and of its twin.

`python -m tests.differential.allocator --worlds 5000` compares them. With `--record N` it writes N worlds with
Kubernetes' answers to `tests/data/allocator/random.jsonl.gz`, and those of the seeds that are named beside them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane import build
from tests.model import allocator_worlds
from tests.oracles import allocator
from tests.oracles.allocator_expressions import judge
from tests.oracles.allocator_results import normal

Json = dict[str, Any]
PROGRAM = "dra-allocator"
DATA = Path(__file__).parents[1] / "data/allocator"
# Kubernetes' own test cases, and worlds of ours.
KUBERNETES, RANDOM = "kubernetes.jsonl", "random.jsonl.gz"
# Worlds that are longer, or take the twin longer, are not recorded.
LONGEST, FEW_STEPS = 8_000, 3_000
# Of ten worlds that are recorded.
SHARES = {"found": 5, "none": 3, "errors": 2}
# Names, numbers and quoted words differ from world to world; what is left is the kind of an answer.
_NAMES = re.compile(r"\S*/\S*|\"[^\"]*\"|#?\d+|\b[a-z]\d+\b|class-\w")


def cases(name: str) -> list[Json]:
    """Read what is recorded in a file of ``tests/data/allocator``: worlds with Kubernetes' answers."""
    data = (DATA / name).read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    return [json.loads(line) for line in text.decode().splitlines()]


class EndedError(RuntimeError):
    """The program ended before it answered all; the text is what it said."""


def ask(worlds: Sequence[Json]) -> list[Json]:
    """Return Kubernetes' answer for each world: its ``results``, which may be none, and its ``error``."""
    told = subprocess.run(
        [build.ensure(PROGRAM)[PROGRAM]],
        input="".join(json.dumps(world) + "\n" for world in worlds),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        raise EndedError(told.stderr)
    return [json.loads(line) for line in told.stdout.splitlines()]


def outcome(answer: Json) -> str:
    """What became of a world, in a word, or the kind of its error."""
    if answer["error"]:
        return _NAMES.sub("*", str(answer["error"]).split("\n", maxsplit=1)[0])
    return "none" if answer["results"] is None else "found"


def compare(seeds: Sequence[int]) -> Iterator[tuple[int, str, Json | None]]:
    """Say for each seed what became of its world; and what the twin says, if that is something else."""
    worlds = [allocator_worlds.draw(seed) for seed in seeds]
    for seed, world, theirs in zip(seeds, worlds, ask(worlds), strict=True):
        try:
            ours = allocator.allocate(world, judge)
        except allocator.TooManyStepsError:
            yield seed, "too long for the twin", None
            continue
        is_same = ours["error"] == theirs["error"] and normal(ours["results"]) == normal(
            theirs["results"]
        )
        yield seed, outcome(theirs), None if is_same else ours


def record(seeds: Sequence[int], most: int, named: Sequence[int]) -> Iterator[Json]:
    """Choose worlds whose aspects and outcomes are rare among those chosen before them; and those that are named."""
    worlds = {seed: allocator_worlds.draw(seed) for seed in [*seeds, *named]}
    short = [
        seed
        for seed, world in worlds.items()
        if seed in named or (len(json.dumps(world)) <= LONGEST and _is_quick(world))
    ]
    answers = dict(zip(short, ask([worlds[seed] for seed in short]), strict=True))
    chosen: list[int] = []
    for part, share in SHARES.items():
        left = [seed for seed in short if part in {outcome(answers[seed]), "errors"}]
        left = [seed for seed in left if part != "errors" or answers[seed]["error"]]
        seen: Counter[str] = Counter()
        for _ in range(most * share // 10):
            best = min((_rank(seed, answers, seen), seed) for seed in left)[1]
            left.remove(best)
            seen.update([outcome(answers[best]), *_kinds(best, answers)])
            chosen.append(best)
    for seed in sorted({*chosen, *named}):
        error = {"error": answers[seed]["error"]} if answers[seed]["error"] else {}
        yield {
            "name": f"world {seed}",
            "world": worlds[seed],
            **error,
            "results": answers[seed]["results"],
        }


def _is_quick(world: Json) -> bool:
    try:
        allocator.allocate(world, judge, steps=FEW_STEPS)
    except allocator.TooManyStepsError:
        return False
    return True


def _rank(seed: int, answers: Mapping[int, Json], seen: Counter[str]) -> tuple[int, int]:
    """How often its outcome is there already, and the rarest of its aspects with this outcome."""
    return seen[outcome(answers[seed])], min(seen[one] for one in _kinds(seed, answers))


def _kinds(seed: int, answers: Mapping[int, Json]) -> list[str]:
    return [f"{aspect}: {outcome(answers[seed])}" for aspect in allocator_worlds.aspects_of(seed)]


def main() -> int:
    """Run; 1 if any world differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.allocator")
    parser.add_argument("--worlds", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0, help="the first world")
    parser.add_argument("--record", type=int, metavar="N", help="write so many of them")
    parser.add_argument("named", type=int, nargs="*", metavar="seed", help="write these too")
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.worlds)
    if chosen.record:
        found = record(seeds, chosen.record, chosen.named)
        lines = [json.dumps(one, separators=(",", ":"), sort_keys=True) + "\n" for one in found]
        # Without the time the same cases make the same file.
        (DATA / RANDOM).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
        return 0
    became: Counter[str] = Counter()
    different = 0
    for seed, what, ours in compare(seeds):
        became[what] += 1
        if ours is not None:
            different += 1
            print(f"world {seed}: {what}; the twin: {outcome(ours)}", flush=True)
    for what, count in became.most_common():
        print(f"{count:6} {what}")
    print(f"{different} of {len(seeds)} differ")
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main())
