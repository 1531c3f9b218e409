"""Worlds from a seed, each asked of Kueue more than once, and of the other side if there is one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tests.differential.queues import known, newer, ours
from tests.differential.queues.compare import (
    Chance,
    Difference,
    compare,
    find_chance,
    find_differences,
)
from tests.differential.queues.outcomes import Outcome
from tests.differential.queues.program import EndedError
from tests.differential.queues.slices import GATE
from tests.differential.queues.worlds import World, build

# A world's seed tells the run's seed and the world's number.
_WORLDS = 1_000_000
# Chance that decides one time in two is missed by one world in four.
TIMES = 2

# The other side: the same worlds, the same form.
RunOurs = Callable[[World], Outcome]


class Asker(Protocol):
    """Whoever answers for Kueue."""

    def ask(self, world: World, *, patiently: bool = False) -> Awaitable[Outcome]:
        """What becomes of a world."""


class Plan(NamedTuple):
    """What to ask.

    Attributes:
        seed: another one, other worlds.
        numbers: of the worlds.
        is_fair: with fair sharing.
        times: how often each is asked of Kueue.
        has_slices: with slices of elastic jobs.
    """

    seed: int
    numbers: Sequence[int]
    is_fair: bool = False
    times: int = TIMES
    has_slices: bool = False


class Case(NamedTuple):
    """One world, asked of both.

    Attributes:
        name: by which it can be asked again.
        world: the question.
        chance: what Kueue answered, and what of it is chance.
        ours: the other's answer; None if nobody was asked, or the world is ambiguous.
        found: what is not the same.
        rule: the known reason why something else is done; empty if there is none.
    """

    name: str
    world: World
    chance: Chance
    ours: Outcome | None
    found: Sequence[Difference]
    rule: str = ""

    def list_titles(self) -> set[str]:
        """List the known reasons for what is not the same; an empty text stands for what has none."""
        # Words of a step in which something else is done follow from that.
        done = {one.step for one in self.found if not one.is_of_words} if self.rule else set()
        return {
            self.rule if one.step in done else known.find_title(one, self.world)
            for one in self.found
        }


@dataclass(slots=True)
class Tally:
    """What a run came to.

    Attributes:
        worlds: how many.
        lost: those in which Kueue ended or did not come to rest, by name with what it said.
        ambiguous: how many of which Kueue itself gave answers in which other things are done.
        chances: in how many worlds each part of the answer was chance.
        became: how often each fate and each kind of eviction occurred at the end of a step.
        known: how many differ for each known reason.
        failed: those that differ for another.
    """

    worlds: int = 0
    lost: dict[str, str] = field(default_factory=dict)
    ambiguous: int = 0
    chances: Counter[str] = field(default_factory=Counter)
    became: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failed: list[Case] = field(default_factory=list)

    def add(self, case: Case) -> None:
        """Count one."""
        self.worlds += 1
        self.ambiguous += case.chance.is_ambiguous
        self.chances.update({one.what for one in case.chance.differences})
        for step in case.chance.answers[0].steps:
            self.became.update(fate.status for fate in step.fates.values())
            self.became.update(f"evicted: {one.why or one.reason}" for one in step.evictions)
            self.became["steps without an end"] += step.is_endless
        titles = case.list_titles()
        self.known.update(titles - {""})
        if "" in titles:
            self.failed.append(case)

    def report(self) -> str:
        """For people."""
        became = ", ".join(f"{n} {what}" for what, n in sorted(self.became.items()) if n)
        lines = [f"{self.worlds} worlds: {became}"]
        lines.append(f"ambiguous in Kueue itself and not compared: {self.ambiguous}")
        chances = ", ".join(f"{what} in {n}" for what, n in self.chances.most_common())
        lines.append(f"by chance in Kueue itself: {chances or 'nothing'}")
        if self.lost:
            lines.append(f"given up as Kueue ended or did not rest: {', '.join(self.lost)}")
        lines += [
            f"known difference, {n} worlds: {title}" for title, n in sorted(self.known.items())
        ]
        kinds = Counter(kind for case in self.failed for kind in {one.what for one in case.found})
        lines += [f"DIFFERENT, {n} worlds: {kind}" for kind, n in kinds.most_common()]
        return "\n".join(lines)


async def run(
    kueues: Sequence[Asker],
    plan: Plan,
    run_ours: RunOurs | None,
    tell: Callable[[Tally, Case], None],
) -> Tally:
    """Ask.

    Args:
        kueues: as ``oracle.start`` makes them; several ask beside each other, as each waits most of the time.
        plan: what to ask.
        run_ours: the other side's answer to a world; without it only Kueue is asked.
        tell: sees the tally and the case after each.
    """
    tally = Tally()
    numbers = iter(plan.numbers)  # one for all: each takes the next

    async def work(kueue: Asker) -> None:
        for number in numbers:
            name = f"seed {plan.seed} world {number}"
            world = build(
                plan.seed * _WORLDS + number, is_fair=plan.is_fair, has_slices=plan.has_slices
            )
            try:
                # The first time Kueue may not have seen all; the second it is given longer.
                answers = [await kueue.ask(world, patiently=bool(i)) for i in range(plan.times)]
            except (EndedError, TimeoutError) as error:
                tally.lost[name] = str(error)
                continue
            case = _compare(name, world, answers, run_ours)
            if "" in case.list_titles():
                # On a busy machine Kueue may have paused, and is not done yet: it is asked once more before that counts.
                with suppress(EndedError, TimeoutError):
                    answers.append(await kueue.ask(world, patiently=True))
                    case = _compare(name, world, answers, run_ours)
            tally.add(case)
            tell(tally, case)

    async with asyncio.TaskGroup() as group:
        for kueue in kueues:
            group.create_task(work(kueue))
    return tally


def _compare(name: str, world: World, answers: list[Outcome], run_ours: RunOurs | None) -> Case:
    chance = find_chance(answers)
    mine = None if run_ours is None or chance.is_ambiguous else run_ours(world)
    found = [] if mine is None else compare(chance, mine)
    rule = ""
    if mine is not None and not _is_done_alike(found):
        rule = _find_rule(world, chance, mine)
    return Case(name, world, chance, mine, found, rule)


def _find_rule(world: World, chance: Chance, mine: Outcome) -> str:
    """Find why something else is done.

    By the newer rules the same is done, or there is no telling what they do, or the same is done without the one rule
    that only we have.
    """
    rules: dict[str, dict[str, bool]] = {"": {}}
    if GATE in world.settings.get("featureGates", {}):
        rules[known.IN_FULL] = {"asks_in_full": True}
    for title, slices in rules.items():
        newer_answer = newer.run(world, **slices)
        if _is_done_alike(find_differences(newer_answer.outcome, mine)):
            early = newer.run(world, frees_early=True, **slices).outcome
            is_early = not _is_done_alike(find_differences(early, mine))
            return title or (known.EARLY if is_early else known.NEWER)
        if newer_answer.goes_in_circles:
            return known.CIRCLE
    if mine != ours.run(world):
        return ""
    plain = ours.run_without_sparing(world)
    both = [compare(chance, plain)]
    both += [find_differences(newer.run(world, **one).outcome, plain) for one in rules.values()]
    return known.SPARED if any(map(_is_done_alike, both)) else ""


def _is_done_alike(found: Sequence[Difference]) -> bool:
    return all(one.is_of_words for one in found)
