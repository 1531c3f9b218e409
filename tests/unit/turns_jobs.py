"""Jobs for tests of the turns before nodes."""

from scheduler.api.cards import Grant
from scheduler.api.door.decisions import Bind
from scheduler.engine.questions.waiting import Place
from scheduler.kube.bind.jobs import FIRST, Job
from tests import make

# After how long without an answer a plugin is silent, and a time after which no clock matters.
SILENCE = 20.0
DAY = 86400.0
# A driver whose plugin has no lock.
UNLOCKED = "HAMi kunlun"
POD = make.cluster().see_pod(make.pod(name="p"))


def job(uid: str, node: str = "a", *, place: Place = FIRST, driver: str = "HAMi") -> Job:
    assert POD is not None
    return Job(Bind(uid, node, (Grant(driver, ((),)),)), POD, 1, 0.0, place=place)
