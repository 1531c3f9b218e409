"""Worlds from a seed, each asked of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.differential.groups import ours
from tests.differential.groups.answers import GroupAnswer
from tests.differential.groups.oracle import GroupOracle, make_file
from tests.differential.groups.worlds import build

Json = dict[str, Any]
# A world's seed tells the run's seed and the world's number.
_WORLDS = 1_000_000
# kube-scheduler goes over domains in an order of chance, and tells of the first. Of two, it told of the one that
# Evenkeel tells of in 18 of 60 answers: it misses that one so many times once in a million worlds.
_TIMES = 40
_WHOLE = "placed whole"


class Case(NamedTuple):
    """One question to both.

    Attributes:
        name: by which it can be asked again.
        objects: all that was there.
        theirs: kube-scheduler's last answer.
        ours: Evenkeel's.
    """

    name: str
    objects: Sequence[Json]
    theirs: GroupAnswer
    ours: GroupAnswer


@dataclass(slots=True)
class Tally:
    """What a run came to.

    Attributes:
        cases: how many.
        again: how many were alike only when they were asked again.
        became: how many groups were placed whole, placed in part, promised room, told that they wait, not told anything;
            those that were placed whole, and whose minimum was raised then, by what became of their late pods.
        known: how many differ because kube-scheduler also makes room for members of a PodGroup that is not placed even
            then, if other PodGroups of its CompositePodGroup are. Evenkeel sends nobody away for these.
        failed: those that differ for another reason.
    """

    cases: int = 0
    again: int = 0
    became: Counter[str] = field(default_factory=Counter)
    known: int = 0
    failed: list[Case] = field(default_factory=list)

    def report(self) -> str:
        """For people."""
        became = ", ".join(f"{n} {what}" for what, n in sorted(self.became.items()))
        lines = [f"{self.cases} groups: {became}", f"asked more than once: {self.again}"]
        lines.append(f"known difference, room for a PodGroup that is not placed: {self.known}")
        kinds = Counter(kind for one in self.failed for kind in one.theirs.differences(one.ours))
        lines += [f"DIFFERENT, {n} groups: {kind}" for kind, n in kinds.most_common()]
        return "\n".join(lines)


class _Asked:
    """What both said to one question, which is asked again as long as they differ."""

    def __init__(self) -> None:
        self._heads: list[GroupAnswer] = []
        self._rests: list[frozenset[str]] = []

    def agree(self, theirs: GroupAnswer, mine: GroupAnswer) -> bool:
        """Take over one more answer of each; return whether ours is one that kube-scheduler has given."""
        head, rest = theirs.split()
        self._heads.append(head)
        self._rests.append(rest)
        head, rest = mine.split()
        return head in self._heads and rest in self._rests

    def agree_but_for_room(self, mine: GroupAnswer) -> bool:
        """Return whether kube-scheduler has said the same where only the room differs that is made."""
        head, _ = mine.split()
        return _drop_room(head) in map(_drop_room, self._heads)


async def run(
    oracle: GroupOracle, seed: int, numbers: Sequence[int], tell: Callable[[Tally], None]
) -> Tally:
    """Ask about the worlds of these numbers; ``tell`` sees the tally after each case."""
    tally = Tally()
    for number in numbers:
        n_asked, is_same = 0, False
        first, second = _Asked(), _Asked()
        while n_asked < _TIMES and not is_same:
            n_asked += 1
            name = f"seed {seed} group {number}"
            world = build(seed * _WORLDS + number)
            there, theirs = await oracle.ask_group(world)
            evenkeel = ours.Evenkeel(there)
            mine = evenkeel.answer([one["metadata"]["name"] for one in world.incoming])
            is_same = first.agree(theirs, mine)
            became = _name_fate(theirs)
            if is_same and world.raised and became == _WHOLE and mine.nodes == theirs.nodes:
                name += ", raised"
                there, theirs = await oracle.ask_raised(world)
                evenkeel.see(there)
                mine = evenkeel.answer([one["metadata"]["name"] for one in world.late])
                is_same = second.agree(theirs, mine)
                became = f"{_name_fate(theirs)} after its minimum was raised"
        tally.cases += 1
        tally.again += n_asked > 1 and is_same
        tally.became[became] += 1
        if (
            not is_same
            and _promises_in_vain(there, theirs)
            and (first.agree_but_for_room(mine) or second.agree_but_for_room(mine))
        ):
            tally.known += 1
        elif not is_same:
            tally.failed.append(Case(name, there, theirs, mine))
        tell(tally)
    return tally


def _drop_room(head: GroupAnswer) -> GroupAnswer:
    return head._replace(nominated={}, victims=frozenset())


def _promises_in_vain(there: Sequence[Json], answer: GroupAnswer) -> bool:
    """Whether kube-scheduler promises nodes to members of a PodGroup that it does not place on them."""
    if not any(one["kind"] == "CompositePodGroup" for one in there):
        return False
    group_of = {
        one["metadata"]["name"]: one["spec"]["schedulingGroup"]["podGroupName"]
        for one in there
        if one["kind"] == "Pod" and "schedulingGroup" in one["spec"]
    }
    n_with_node = Counter(group_of[name] for name in (*answer.nodes, *answer.nominated))
    minimum = {
        one["metadata"]["name"]: one["spec"]["schedulingPolicy"].get("gang", {}).get("minCount", 1)
        for one in there
        if one["kind"] == "PodGroup"
    }
    return any(n_with_node[group_of[name]] < minimum[group_of[name]] for name in answer.nominated)


def _name_fate(answer: GroupAnswer) -> str:
    if answer.nodes:
        return "placed in part" if answer.messages else _WHOLE
    if answer.nominated:
        return "promised room"
    return "told that they wait" if answer.messages else "not told anything"


def write(case: Case, folder: Path) -> Path:
    """Write the cluster of a case and what is not the same, in a file that ``evenkeel simulate`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (case.name.replace(", ", "-").replace(" ", "-") + ".yaml")
    (folder / "config.json").write_text(json.dumps(make_file(), indent=1) + "\n", encoding="utf-8")
    told = [case.name]
    for what, (theirs, mine) in case.theirs.differences(case.ours).items():
        told += [what, f"  kube-scheduler: {theirs}", f"  Evenkeel: {mine}"]
    comment = "".join(f"# {line}\n" for line in "\n".join(told).splitlines())
    whole = {"apiVersion": "v1", "kind": "List", "items": [*map(_shorten, case.objects)]}
    path.write_text(comment + json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return path


def _shorten(body: Json) -> Json:
    """Leave out what only the API server wants to know."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return body | {"metadata": meta}
