"""``make mutants``: mistakes drawn by a seed, and for each whether the slice finds it, or all examples."""

from __future__ import annotations

import argparse
import ast
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.mutants import belonging, mistakes, trying

_TESTS = 12


Rooms = dict[str, dict[Path, int]]


class Mutant(NamedTuple):
    """A module with a mistake."""

    path: str
    text: str
    line: int
    what: str


def find_rooms(root: Path) -> Rooms:
    """Return the rooms of the scheduler in which a mistake can be made, with the number of places in each module."""
    rooms: Rooms = defaultdict(dict)
    scheduler = root / "scheduler"
    for path in sorted(scheduler.rglob("*.py")):
        n = len(mistakes.find_mistakes(ast.parse(path.read_text(encoding="utf-8"))))
        if n:
            rooms[path.relative_to(scheduler).parts[0]][path] = n
    return rooms


def draw(rng: random.Random, rooms: Rooms, root: Path) -> Mutant:
    """Draw a room, a module of it by its number of places, and a place; ``rooms`` are those of the tree ``root``."""
    places = rooms[rng.choice(list(rooms))]
    (path,) = rng.choices(list(places), list(places.values()))
    source = path.read_text(encoding="utf-8")
    text, mistake = mistakes.with_mistake(source, rng.randrange(places[path]))
    return Mutant(str(path.relative_to(root)), text, mistake.line, mistake.what)


def main() -> int:
    """Try; 1 if all examples find a mistake that the slice does not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=40)
    given = parser.parse_args()
    print(f"mutants: {given.count} by the seed {given.seed}; each by {_TESTS} test files", flush=True)  # fmt: skip
    rng = random.Random(given.seed)
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        # Of the copy: somebody may go on working on the tree meanwhile.
        copy = trying.Copy(Path(folder))
        rooms = find_rooms(copy.root)
        for i in range(given.count):
            mutant = draw(rng, rooms, copy.root)
            began_at = time.monotonic()
            answer, by = judge(copy, mutant)
            told[answer] += 1
            seconds = time.monotonic() - began_at
            print(f"{i + 1:3} {answer:18} {seconds:4.0f} s  {mutant.path}:{mutant.line}  {mutant.what}  {by}", flush=True)  # fmt: skip
    print(f"mutants: {', '.join(f'{answer}: {n}' for answer, n in sorted(told.items()))}")
    return 1 if told[LOST] else 0


FOUND, LOST, NEITHER = "slice", "ALL EXAMPLES ONLY", "neither"


def judge(copy: trying.Copy, mutant: Mutant) -> tuple[str, str]:
    """Which of both finds a mistake, and by which test.

    What the slice finds, nothing is lost of; and of all examples only the tests can find more that try more.
    """
    name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    tests = belonging.find_nearest_tests(name, _TESTS)
    more = [test for test in tests if belonging.tries_more(test)]
    for answer, asked, soak in ((FOUND, tests, False), (LOST, more, True)):
        by = copy.find_failure(mutant.path, mutant.text, asked, soak=soak) if asked else ""
        if by:
            return answer, by
    return NEITHER, ""


if __name__ == "__main__":
    sys.exit(main())
