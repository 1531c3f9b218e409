"""The log of a scheduler with groups, evictions and failed binds gives the same decisions again, in each of its files."""

from __future__ import annotations

from itertools import pairwise

import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.groups.objects import KaiPodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.waiting import QueueCounts
from scheduler.engine.recorded import Recorded
from scheduler.engine.rerun import rerun
from tests import make, slices
from tests.unit.test_groups_storms import World

_STEPS = 60


class Logged(World):
    """A world whose scheduler writes a log, which is cut into files by fresh starts.

    Attributes:
        lines: the log of the present process.
        begins: where its files begin.
        n_files: how many files were run again.
    """

    def __init__(self, seed: int) -> None:
        self.lines: list[bytes] = []
        self.begins: list[int] = []
        self.n_files = 0
        super().__init__(seed)

    def _make_engine(self) -> Engine:
        self.check_log()
        self.lines, self.begins = [], [0]
        return Recorded(Config(), "test", self.lines.append)

    def cut_log(self) -> None:
        assert isinstance(self.engine, Recorded)
        self.begins.append(len(self.lines))
        self.engine.start_anew(self.now)

    def check_log(self) -> None:
        """Run all files of the log again."""
        for begin, end in pairwise([*self.begins, len(self.lines)]):
            assert rerun(self.lines[begin:end]).difference is None
            self.n_files += 1


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(100))))
def test_each_file_of_a_log_with_groups_gives_the_same_decisions(seed: int) -> None:
    world = Logged(seed)
    for _ in range(_STEPS):
        world.happen()
        world.go_on()
        if world.rng.random() < 0.1:
            world.cut_log()
    world.check_log()
    assert world.n_files > 1
    assert world.n_evicted + world.n_failed > 0


def test_a_log_says_that_a_question_had_groups_formed_before_the_next_decision() -> None:
    """The time after which a group goes that is below its minimum counts from there."""
    lines: list[bytes] = []
    engine = Recorded(Config(), "test", lines.append)
    engine.handle(events.Seen(make.node(name="n", cpu=8)), 1000.0)
    meta = wire.Meta(name="g", namespace="default", uid="g")
    engine.handle(events.Seen(KaiPodGroup(meta, {"minMember": 2})), 1000.0)
    for name in ("stays", "goes"):
        pod = make.pod(name=name, node="n", cpu=1, annotations={names.KAI_GROUP: "g"})
        engine.handle(events.Seen(pod), 1000.0)
    engine.decide(1000.0, Unlimited())
    engine.handle(events.Gone("Pod", "default/goes"), 1010.0)
    engine.ask(QueueCounts())
    now, evicts = 1012.0, engine.decide(1012.0, Unlimited()).evicts
    while not evicts:
        now = engine.find_due(now)
        assert now < 1072.0
        evicts = engine.decide(now, Unlimited()).evicts
    assert evicts[0].victims == ("default/stays",)
    assert rerun(lines).difference is None
