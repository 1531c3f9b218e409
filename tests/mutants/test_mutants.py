"""A mistake is a mistake, and the tests that it is shown to are those of its module."""

import ast
import random

from tests.mutants import __main__ as mutants
from tests.mutants import belonging, mistakes

SOURCE = """
def grow(self, n: int = 2) -> int:
    if n < 3 and self.has_room:
        self.total += n
    return n + 1
"""


def test_every_mistake_is_one_change_of_what_python_runs() -> None:
    found = mistakes.find_mistakes(ast.parse(SOURCE))
    texts = [mistakes.with_mistake(SOURCE, i)[0] for i in range(len(found))]
    assert [one.what for one in found] == [
        "2 → 3",
        "2 → 1",
        "condition negated",
        "removed: self.total += n",
        "And → Or",
        "Lt → LtE",
        "3 → 4",
        "3 → 2",
        "Add → Sub",
        "1 → 2",
        "1 → 0",
    ]
    assert len({ast.unparse(ast.parse(SOURCE)), *texts}) == len(texts) + 1
    for text in texts:
        compile(text, "mutant", "exec")


def test_mutants_are_drawn_by_the_seed_from_many_rooms() -> None:
    rooms = mutants.find_rooms(belonging.ROOT)
    drawn, again = (
        [mutants.draw(random.Random(seed), rooms, belonging.ROOT) for seed in range(6)]
        for _ in range(2)
    )
    assert drawn == again
    assert len({one.path.split("/")[1] for one in drawn}) > 3


def test_the_tests_of_a_module_are_found_by_what_they_import() -> None:
    nearest = belonging.find_nearest_tests("scheduler.kernels.devices.gpus", 4)
    assert "tests/unit/test_kernels_gpus.py" in nearest
    nearest = belonging.find_nearest_tests("scheduler.engine.splitting", 4)
    assert nearest[0] == "tests/unit/test_splitting.py"
