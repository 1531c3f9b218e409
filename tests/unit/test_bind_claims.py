"""Jobs whose claims are being bound, in any order of news: each ends once, as the last news says."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import storage
from scheduler.api.door.decisions import Bind
from scheduler.api.storage import Given
from scheduler.devices.table import Devices
from scheduler.kube.bind.jobs import GiveBack, Job, Start
from scheduler.kube.bind.volume_waits import ClaimWaits, GivenClaim
from scheduler.state.nodes import NodeTable
from scheduler.state.pools import PoolTable
from scheduler.state.volumes.store import Storage
from tests import make
from tests.unit.volume_lookups import lookups_of

Json = dict[str, Any]
SELECTED, BOUND = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed"
CLAIM, VOLUME = ("default", "c"), "v"
PATIENCE = 600.0


def claim(version: int, *, node: str = "n", volume: str = "", bound: bool = False) -> Json:
    notes = ({SELECTED: node} if node else {}) | ({BOUND: "yes"} if bound else {})
    meta = {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return {"kind": "PersistentVolumeClaim", "metadata": meta | {"annotations": notes},
            "spec": {"volumeName": volume}}  # fmt: skip


def volume(version: int, *, node: str = "n", uid: str = "u") -> Json:
    host = {"key": "host", "operator": "In", "values": [node]}
    spec: Json = {
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}
    }
    if uid:
        spec["claimRef"] = {"namespace": "default", "name": "c", "uid": uid}
    return {"kind": "PersistentVolume", "metadata": {"name": "v", "resourceVersion": str(version)},
            "spec": spec}  # fmt: skip


class Scene:
    """One job, and all that its claim may live through."""

    def __init__(self) -> None:
        self.storage = Storage(NodeTable(Devices(()), PoolTable()))
        self.nodes = {"n": {"host": "n"}}
        known = lookups_of(self.storage, self.nodes.get, PATIENCE)
        self.claims = ClaimWaits(known)
        (record,) = make.cluster(pods=[make.pod(name="p")]).pods.values()
        self.job = Job(Bind(record.uid, "n", given=(Given("c"),)), record, 1, 0.0)
        self.ended: list[Start | GiveBack] = []

    def begin(self, *, given: str = "", version: int = 2) -> None:
        self.ended += self.claims.begin_waiting(
            self.job, (GivenClaim(CLAIM, given, str(version)),), 0.0
        )

    def see(self, *bodies: Json) -> None:
        for body in bodies:
            self.storage.see(msgspec.convert(body, storage.KINDS[body["kind"]]))
            meta = body["metadata"]
            self.ended += self.claims.see_object(
                body["kind"], meta.get("namespace", ""), meta["name"]
            )

    def gone(self, kind: str, namespace: str, name: str) -> None:
        self.storage.drop_object(kind, namespace, name)
        self.ended += self.claims.see_object(kind, namespace, name)

    @property
    def why(self) -> str:
        (effect,) = self.ended
        return effect.why if isinstance(effect, GiveBack) else ""


def test_a_claim_that_is_provisioned_is_waited_for_until_its_volume_is_known() -> None:
    scene = Scene()
    scene.see(claim(1, node=""))
    scene.begin()
    scene.see(claim(2))
    # The volume's news may come after those of the claim.
    scene.see(claim(3, volume="v", bound=True))
    assert scene.ended == []
    scene.see(volume(4))
    assert scene.ended == [Start(scene.job)]
    assert len(scene.claims) == 0


def test_what_was_seen_of_before_the_write_says_nothing() -> None:
    """The annotation is not there yet: nobody has refused."""
    scene = Scene()
    scene.see(claim(1, node=""))
    scene.begin(version=10)
    scene.see(claim(9, node=""))
    assert scene.ended == []


def test_a_provisioner_refuses_by_taking_the_node_away() -> None:
    scene = Scene()
    scene.see(claim(2))
    scene.begin()
    scene.see(claim(3, node=""))
    assert scene.why == 'binding volumes: provisioning failed for PVC "c"'


@pytest.mark.parametrize(
    ("news", "why"),
    [
        ([claim(3, volume="v", bound=True), volume(4)], ""),
        ([volume(3, uid="")], 'binding volumes: ClaimRef got reset for pv "v"'),
        (
            [volume(3, node="m")],
            'binding volumes: pv "v" node affinity doesn\'t match node "n"',
        ),
    ],
)
def test_a_volume_that_is_given_is_waited_for(news: list[Json], why: str) -> None:
    scene = Scene()
    scene.see(claim(1, node=""), volume(2))
    scene.begin(given="v")
    assert scene.ended == []
    scene.see(*news)
    assert scene.why == why


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        (("PersistentVolumeClaim", "default", "c"), 'binding volumes: PVC "c" is gone'),
        (("PersistentVolume", "", "v"), 'binding volumes: PV "v" is gone'),
    ],
)
def test_what_is_gone_is_not_waited_for(gone: tuple[str, str, str], why: str) -> None:
    scene = Scene()
    scene.see(claim(1, node=""), volume(2))
    scene.begin(given="v")
    scene.gone(*gone)
    assert scene.why == why


def test_a_node_that_is_gone_ends_it() -> None:
    scene = Scene()
    scene.see(claim(2))
    scene.begin()
    del scene.nodes["n"]
    scene.ended += scene.claims.note_node_gone("n")
    assert scene.why == 'binding volumes: node "n" is gone'


def test_it_is_given_back_when_its_time_is_over_and_not_before() -> None:
    scene = Scene()
    scene.see(claim(2))
    scene.begin()
    assert list(scene.claims.pass_time(PATIENCE - 1)) == []
    scene.ended += scene.claims.pass_time(PATIENCE)
    assert scene.why == "binding volumes: not all are bound in time"
    assert list(scene.claims.pass_time(2 * PATIENCE)) == []


def test_the_job_of_a_pod_that_is_gone_waits_no_more() -> None:
    scene = Scene()
    scene.see(claim(2))
    scene.begin()
    assert scene.claims.drop_job(scene.job)
    assert not scene.claims.drop_job(scene.job)
    scene.see(claim(3, volume="v", bound=True), volume(4))
    assert scene.ended == []


NEWS = {
    "made": (volume(5),),
    "named": (claim(6, volume="v"),),
    "bound": (claim(7, volume="v", bound=True),),
    "other": ({"kind": "StorageClass", "metadata": {"name": "x"}, "provisioner": "y"},),
}


@given(st.permutations(sorted(NEWS)), st.integers(0, len(NEWS)))
def test_in_whatever_order_news_come_the_job_goes_on_once_when_all_is_there(
    order: list[str], begins_at: int
) -> None:
    scene = Scene()
    scene.see(claim(2))
    for i, name in enumerate(order):
        if i == begins_at:
            scene.begin()
        scene.see(*NEWS[name])
    if begins_at == len(NEWS):
        scene.begin()
    # What was seen last of the claim may be what came before the binding.
    last = max(("named", "bound"), key=order.index)
    assert scene.ended == ([Start(scene.job)] if last == "bound" or _was_whole(order, begins_at) else [])  # fmt: skip


def _was_whole(order: list[str], begins_at: int) -> bool:
    """Whether all was there at some moment after the job began, before older news came."""
    for n in range(begins_at, len(order) + 1):
        seen = order[:n]
        claims = [name for name in seen if name in {"named", "bound"}]
        if "made" in seen and claims and claims[-1] == "bound":
            return True
    return False
