"""What tenants may say of storage: it neither stops the engine nor takes time from others."""

from typing import Any

import msgspec

from scheduler.api import names, storage
from scheduler.api.door import events
from scheduler.api.pods.volumes import Disk
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.chores import PROMPT
from scheduler.engine.engine import Engine
from scheduler.state.volumes.uses import DiskConflicts
from tests import make

Json = dict[str, Any]
LOCAL: Json = {
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": names.NO_PROVISIONER,
    "volumeBindingMode": "WaitForFirstConsumer",
}
VOLUME: Json = {
    "kind": "PersistentVolume",
    "metadata": {"name": "v"},
    "spec": {"capacity": {"storage": "1Gi"}, "storageClassName": "local"},
    "status": {"phase": "Available"},
}


def claim(uid: str, size: str) -> Json:
    spec = {"storageClassName": "local", "resources": {"requests": {"storage": size}}}
    meta = {"name": "c", "namespace": "default", "uid": uid}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def see(engine: Engine, *bodies: Json) -> None:
    for body in bodies:
        engine.handle(events.Seen(msgspec.convert(body, storage.KINDS[body["kind"]])), 0.0)


def test_room_is_promised_to_a_pod_whose_claim_is_another_by_now() -> None:
    """A card is promised to it, and there is no volume for it any more: others are decided for all the same."""
    engine = Engine(Config(), pace=PROMPT, is_shared=False)
    engine.handle(events.Seen(make.hami_node(name="n", cards=1)), 0.0)
    ask: Json = {"gpu": 1, "gpumem": 15000}
    held = {names.HAMI_NODE: "n", names.HAMI_ALLOCATED: "n-GPU-0,NVIDIA,15000,0:;"}
    victim = make.pod(name="low", node="n", annotations=held, **ask)
    engine.handle(events.Seen(victim), 0.0)
    see(engine, LOCAL, VOLUME, claim("u", "1Gi"))
    spec = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}
    engine.handle(events.Seen(make.pod(name="p", priority=10, spec=spec, **ask)), 0.0)
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert evict.victims == (victim.metadata.uid,)
    engine.handle(events.Gone("PersistentVolumeClaim", "default/c"), 1.0)
    see(engine, claim("u2", "100Gi"))
    engine.handle(events.Seen(make.pod(name="q", gpu=1, gpumem=1000)), 1.0)
    engine.handle(events.Seen(make.pod(name="r", cpu=1)), 1.0)
    (bind,) = engine.decide(1.0, Unlimited()).binds
    assert bind.uid == "default/r"


def test_disks_are_compared_with_those_of_their_name_alone() -> None:
    class Counted(Disk):
        n = 0

        def has_conflict(self, other: Disk) -> bool:
            Counted.n += 1
            return super().has_conflict(other)

    wanted = tuple(Counted("gce", str(i), is_read_only=False) for i in range(1000))
    assert DiskConflicts(wanted).of_one == Counted.n == 1000
