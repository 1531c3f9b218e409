"""What two outcomes of a world have in common, and what not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.differential.queues.outcomes import Outcome, StepOutcome

STATUS, QUEUE, POD_SETS, REASON, MESSAGE = "status", "queue", "pod_sets", "reason", "message"
EVICTIONS, ENDLESS, STEPS = "evictions", "is_endless", "steps"
# What people are told; all else is what is done.
WORDS = frozenset({REASON, MESSAGE})


class Difference(NamedTuple):
    """One thing that is not the same.

    Attributes:
        step: of the world, from 0.
        what: a field of a workload's fate, evictions, is_endless, or steps if one has more of them.
        workload: by name, "" for what is of the whole step.
        theirs: what Kueue says.
        ours: what the other says.
    """

    step: int
    what: str
    workload: str
    theirs: object
    ours: object

    @property
    def is_of_words(self) -> bool:
        """Whether the same is done, and only told otherwise."""
        return self.what in WORDS


def find_differences(theirs: Outcome, ours: Outcome) -> list[Difference]:
    """All that is not the same in the first step in which something else is done, and words before it.

    What comes after such a step follows from it.
    """
    found: list[Difference] = []
    for step, pair in enumerate(zip(theirs.steps, ours.steps, strict=False)):
        found += _compare_steps(step, *pair)
        if not all(one.is_of_words for one in found):
            return found
    if len(theirs.steps) != len(ours.steps):
        lengths = len(theirs.steps), len(ours.steps)
        found.append(Difference(min(lengths), STEPS, "", *lengths))
    return found


def _compare_steps(step: int, theirs: StepOutcome, ours: StepOutcome) -> Iterator[Difference]:
    for what in (EVICTIONS, ENDLESS):
        pair = getattr(theirs, what), getattr(ours, what)
        if _plain(pair[0]) != _plain(pair[1]):
            yield Difference(step, what, "", *pair)
    for name in sorted(theirs.fates.keys() | ours.fates.keys()):
        both = theirs.fates.get(name), ours.fates.get(name)
        if both[0] is None or both[1] is None:
            yield Difference(step, STATUS, name, *both)
            continue
        for what in (STATUS, QUEUE, POD_SETS, REASON, MESSAGE):
            pair = getattr(both[0], what), getattr(both[1], what)
            if _plain(pair[0]) != _plain(pair[1]):
                yield Difference(step, what, name, *pair)


def _plain(value: object) -> object:
    """A list is as good as a tuple."""
    return [*value] if isinstance(value, list | tuple) else value


class Chance(NamedTuple):
    """What is Kueue's own chance, by several outcomes of the same world.

    Attributes:
        answers: all that Kueue gave.
        differences: between the first and each other one.
    """

    answers: Sequence[Outcome]
    differences: Sequence[Difference]

    @property
    def is_ambiguous(self) -> bool:
        """Whether what is done is chance, so that the world tells nothing of anybody else."""
        return not all(one.is_of_words for one in self.differences)


def find_chance(answers: Sequence[Outcome]) -> Chance:
    """Compare Kueue's answers with each other; there is at least one."""
    first, *others = answers
    return Chance(answers, [one for other in others for one in find_differences(first, other)])


def compare(chance: Chance, ours: Outcome) -> list[Difference]:
    """What is not as in any of Kueue's answers to a world that is not ambiguous.

    Words that Kueue itself chooses by chance are right if they are as in one of the answers, and are not compared
    otherwise: there may be more of them than it has said.
    """
    loose = {(one.step, one.what, one.workload) for one in chance.differences}
    return [
        one
        for one in find_differences(chance.answers[0], ours)
        if (one.step, one.what, one.workload) not in loose
    ]
