"""Worlds from a seed, each case asked of both, until there were enough cases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.controlplane import objects
from tests.differential import known, ours
from tests.differential.answers import Answer
from tests.differential.compare import Difference, differences
from tests.differential.features import choices
from tests.differential.oracle import Oracle
from tests.differential.worlds import Feature, World, build

Json = dict[str, Any]
# A world's seed tells the run's seed and the world's number.
_WORLDS = 1_000_000
# Codes from here on are the API server's trouble; those before are mistakes in what was asked.
_TOO_SLOW = 500


class Plan(NamedTuple):
    """What a run asks.

    Attributes:
        seed: of all chance.
        n_cases: how many.
        first_world: the number of the first world.
        feature: of worlds with this feature only; empty for all.
    """

    seed: int
    n_cases: int
    first_world: int = 0
    feature: str = ""


class Case(NamedTuple):
    """One question to both.

    Attributes:
        seed: of the world.
        position: which of the pods that came.
        features: of the world, by name.
        objects: all that was there; the pod is the last.
        theirs: kube-scheduler's answer.
        ours: Evenkeel's.
        found: what is not the same.
    """

    seed: int
    position: int
    features: tuple[str, ...]
    objects: Sequence[Json]
    theirs: Answer
    ours: Answer
    found: Sequence[Difference]

    @property
    def name(self) -> str:
        """By which it can be asked again."""
        return f"seed {self.seed // _WORLDS} world {self.seed % _WORLDS} pod {self.position}"


@dataclass(slots=True)
class Tally:
    """What a run came to.

    Attributes:
        cases: how many.
        lost: how many worlds were given up because the API server was too slow.
        again: in how many the two differed at first and not when asked again, more patiently.
        allocated: after how many kube-scheduler has allocated claims for the pod.
        fits: in how many no node, some and all nodes fit.
        features: how many had each.
        known: how many differ for each known reason.
        failed: those that differ for another.
    """

    cases: int = 0
    lost: int = 0
    again: int = 0
    allocated: int = 0
    fits: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failed: list[Case] = field(default_factory=list)

    def add(self, case: Case) -> None:
        """Count one."""
        self.cases += 1
        n_nodes = sum(one["kind"] == "Node" for one in case.objects)
        fitting = len(case.theirs.feasible)
        self.fits["none" if not fitting else "all" if fitting == n_nodes else "some"] += 1
        self.allocated += bool(case.theirs.allocations)
        self.features.update(case.features)
        reasons = [known.reason(one, case.objects) for one in case.found]
        self.known.update({one.title for one in reasons if one is not None})
        if None in reasons:
            self.failed.append(case)

    def report(self) -> str:
        """For people."""
        lines = [
            f"{self.cases} cases: "
            + ", ".join(f"{n} where {k} fit" for k, n in sorted(self.fits.items()))
        ]
        lines.append(f"asked again because kube-scheduler had not seen all yet: {self.again}")
        if self.allocated:
            lines.append(
                f"claims had devices for the pod, the same ones unless told: {self.allocated}"
            )
        if self.lost:
            lines.append(f"worlds given up because the API server was too slow: {self.lost}")
        lines += [
            f"known difference, {n} cases: {title}" for title, n in sorted(self.known.items())
        ]
        kinds = Counter(kind for case in self.failed for kind in {one.what for one in case.found})
        lines += [f"DIFFERENT, {n} cases: {kind}" for kind, n in kinds.most_common()]
        by_feature = Counter(name for case in self.failed for name in case.features)
        lines += [f"  of {self.features[k]} with {k}: {n}" for k, n in by_feature.most_common()]
        return "\n".join(lines)


async def run(oracle: Oracle, plan: Plan, tell: Callable[[Tally], None]) -> Tally:
    """Ask; ``tell`` sees the tally after each case."""
    tally = Tally()
    all_choices = choices(plan.seed)
    for number in count(plan.first_world):
        features = all_choices[number % len(all_choices)]
        if plan.feature and plan.feature not in {one.name for one in features}:
            continue
        world = build(plan.seed * _WORLDS + number, features)
        try:
            async for case in _cases(oracle, world, features, tally):
                tally.add(case)
                tell(tally)
                if tally.cases >= plan.n_cases:
                    return tally
        except objects.CallError as error:
            if error.status < _TOO_SLOW:
                raise
            tally.lost += 1
    raise AssertionError  # numbers never end


async def _cases(
    oracle: Oracle, world: World, features: Sequence[Feature], tally: Tally
) -> AsyncIterator[Case]:
    names = tuple(feature.name for feature in features)
    there = await oracle.load(world)
    for index, pod in enumerate(world.incoming):
        for patiently in (False, True):
            if patiently:
                there = await oracle.load(world, patiently=True)
            asked = await oracle.ask(pod)
            everything = [*there, *asked.claims, asked.pod]
            settings = ours.settings(world.seed // _WORLDS)
            mine = ours.answer(everything[:-1], asked.pod, settings)
            if asked.answer.allocations and asked.answer.node in mine.feasible:
                at = everything[:-1], asked.pod, asked.answer.node
                mine = mine._replace(allocations=ours.allocate(*at, settings))
            found = differences(asked.answer, mine)
            if all(known.reason(one, everything) for one in found):
                tally.again += patiently
                break
        yield Case(world.seed, index, names, everything, asked.answer, mine, found)
        gone = asked.answer.victims
        # A pod whose volumes were being bound is gone, and its claims and volumes are as they were written; and who
        # was nominated to the node of one that sends others away, and comes after it, is so no longer.
        has_claims = "resourceClaims" in pod["spec"]
        is_written = asked.answer.is_binding or asked.answer.nominated or has_claims
        now = await oracle.found(world) if is_written else there
        gone |= {_key(pod)}
        there = [one for one in now if _key(one) not in gone]
        world.pods = [one for one in world.pods if _key(one) not in gone]
        if has_claims:
            # As they are by now.
            kept = [one for one in world.others if one["kind"] != "ResourceClaim"]
            claims = [one for one in there if one["kind"] == "ResourceClaim"]
            world.others = [*kept, *map(_forget_server, claims)]
            world.claims.pop(pod["metadata"]["name"], None)
        if asked.bound is not None:
            # For the API server and for a world that is loaded anew.
            there = [*there, asked.bound]
            spec = pod["spec"] | {"nodeName": asked.answer.node}
            world.pods.append(pod | {"spec": spec})


def _forget_server(body: Json) -> Json:
    """An object as it can be created anew."""
    kept = "name", "namespace", "finalizers", "ownerReferences", "deletionTimestamp"
    meta = {key: value for key, value in body["metadata"].items() if key in kept}
    return body | {"metadata": meta}


def _key(body: Json) -> str:
    """Of a pod ``namespace/name``; nothing else is called so."""
    meta = body["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if body["kind"] == "Pod" else ""


def write(case: Case, folder: Path) -> Path:
    """The cluster of a case and both answers, in a file that ``evenkeel simulate`` reads; beside it the settings."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (case.name.replace(" ", "-") + ".yaml")
    seed = case.seed // _WORLDS
    file = folder / f"config-{seed}.json"
    file.write_text(json.dumps(ours.file(seed), indent=1) + "\n", encoding="utf-8")
    told = [case.name, f"features: {', '.join(case.features)}", f"settings: {file.name}"]
    told += [
        f"{one.what}\n  kube-scheduler: {one.theirs}\n  Evenkeel: {one.ours}" for one in case.found
    ]
    for whose, answer in (("kube-scheduler", case.theirs), ("Evenkeel", case.ours)):
        told.append(f"{whose} in full: {answer}")
    comment = "".join(f"# {line}\n" for line in "\n".join(told).splitlines())
    whole = {"apiVersion": "v1", "kind": "List", "items": [*map(_short, case.objects)]}
    path.write_text(comment + json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return path


def _short(body: Json) -> Json:
    """Without what only the API server wants to know."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return body | {"metadata": meta}


def sample(seed: int, n_worlds: int) -> list[tuple[World, tuple[Feature, ...]]]:
    """The first worlds of a seed, for tests that ask nobody else."""
    found = choices(seed)
    return [
        (build(seed * _WORLDS + number, features), features)
        for number, features in enumerate(islice(found, n_worlds))
    ]
