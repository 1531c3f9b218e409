"""Jobs for tests of the turns before nodes."""

from scheduler.api.cards import Grant
from scheduler.api.door.decisions import Bind
from scheduler.kube.bind.jobs import Job
from tests import make

# How long a plugin has for a pod, and after how long without an answer it is silent.
ALLOCATE = 300.0
SILENCE = 20.0
POD = make.cluster().see_pod(make.pod(name="p"))


def job(uid: str, node: str = "a") -> Job:
    assert POD is not None
    return Job(Bind(uid, node, (Grant("HAMi", ((),)),)), POD, 1, 0.0)
