"""In kube-scheduler's place: the real one and Evenkeel by one name and one lease, and only one of them binds."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane import objects
from tests.controlplane.auditlog import AuditLog
from tests.operator import audit, installed, servers
from tests.operator.process import Operator

KUBE = "system:kube-scheduler"
OURS = f"system:serviceaccount:{installed.NAMESPACE}:evenkeel"
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_BINDS = {"level": "Metadata", "resources": [{"group": "", "resources": ["pods/binding"]}]}
# A lease has to run out, by the clock of who waits for it.
_SECONDS = 60.0
_EACH = 10

pytestmark = pytest.mark.usefixtures("peers")


class Shared:
    """The two schedulers, pods that come all the time, and the API server's own word on who bound which."""

    def __init__(self, server: servers.Server, log: AuditLog) -> None:
        assert server.plane is not None
        self.server, self.plane, self._log = server, server.plane, log
        self.operators: list[Operator] = []

    def start_kube_scheduler(self) -> None:
        """With leader election as it has it when nothing is said about it."""
        self.plane.start_scheduler(config={"leaderElection": {"leaderElect": True}})

    def start_evenkeel(self) -> Operator:
        """With the arguments and the rights of manifests/in-place."""
        operator = Operator(self.server, lease=False, args=installed.deployment_args(self.plane))
        self.operators.append(operator)
        operator.wait_ready()
        return operator

    def binds(self) -> list[str]:
        """Who bound, in order."""
        done = [one for one in self._log.entries() if one["responseStatus"]["code"] == 201]
        return [one["user"]["username"] for one in done]

    def turns(self) -> list[str]:
        """Who bound, each time that it was another."""
        return [user for user, _ in itertools.groupby(self.binds())]

    def goes_on(self, user: str) -> None:
        """Wait until that one binds, and has for some pods in a row."""
        _until(lambda: self.binds()[-_EACH:] == [user] * _EACH, self.binds)

    def holder(self) -> str:
        """Who is written on the lease."""
        return str(self.plane.request("GET", _LEASE).body["spec"]["holderIdentity"])

    @contextmanager
    def pods(self) -> Iterator[None]:
        """Ten a second, for as long as the block runs, and until all are bound."""
        stop = threading.Event()

        def create() -> None:
            for number in itertools.count():
                pod = objects.pod(
                    f"p{number}", schedulerName="default-scheduler", requests={"cpu": "1m"}
                )
                self.plane.request("POST", "/api/v1/namespaces/default/pods", pod)
                if stop.wait(0.1):
                    return

        thread = threading.Thread(target=create)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        unbound = "/api/v1/pods?fieldSelector=spec.nodeName="
        _until(lambda: not self.plane.request("GET", unbound).body["items"], self.binds)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    log = AuditLog(tmp_path, [_BINDS])
    with servers.real(extra_apiserver_flags=log.flags, install=installed.in_place) as server:
        made = Shared(server, log)
        node = objects.node("node", cpu=1000, extended={"pods": 100_000})
        asyncio.run(objects.create_many(made.plane, [node]))
        try:
            yield made
        finally:
            for operator in made.operators:
                operator.kill()


def test_whoever_holds_the_lease_decides_and_never_both(shared: Shared) -> None:
    shared.start_kube_scheduler()
    with shared.pods():
        shared.goes_on(KUBE)

        first = shared.start_evenkeel()
        assert first.get("/readyz") == (200, "ok\n")  # it stands by, which is as it should be
        stands_by = 'evenkeel_lease_holder{holder="peer"}'
        _until(lambda: first.metrics()[stands_by] == 1.0, first.metrics)
        shared.goes_on(KUBE)
        shared.plane.terminate("kube-scheduler")  # gives the lease back
        shared.goes_on(OURS)
        assert shared.holder().startswith("a_")

        shared.start_kube_scheduler()
        shared.goes_on(OURS)
        first.pause()  # keeps the lease without a word, and believes to hold it when it wakes
        shared.goes_on(KUBE)
        first.resume()
        shared.goes_on(KUBE)

        shared.plane.kill("kube-scheduler")
        shared.goes_on(OURS)

        shared.start_kube_scheduler()
        assert first.stop().code == 0
        shared.goes_on(KUBE)

    assert shared.turns() == [KUBE, OURS, KUBE, OURS, KUBE]
    first.check_log()
    nodes, pods = (
        shared.plane.request("GET", f"/api/v1/{kind}").body["items"] for kind in ("nodes", "pods")
    )
    assert audit.problems(nodes, pods) == []


def _until(is_so: Callable[[], bool], told: Callable[[], object]) -> None:
    gives_up_at = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < gives_up_at, told()
        time.sleep(0.1)
