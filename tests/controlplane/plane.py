"""A real control plane in one temporary folder: etcd, kube-apiserver, and more when asked.

    with plane.start() as cp:
        cp.kubectl("get", "--raw", "/version")

Everything is killed, never asked to stop: the API server first, because it hangs once its etcd
is gone. The children die with this process even when it is killed (see `watchdog`).
"""

import atexit
import csv
import json
import secrets
import tempfile
import time
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane import access, build, commands, processes

# It takes two or three seconds; the rest is for machines busy with other things.
READY_SECONDS = 120.0
_POLL_SECONDS = 0.05


class StartError(RuntimeError):
    """A program did not become ready; the text ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class User:
    """Who the API server takes the bearer of a token for."""

    name: str
    groups: tuple[str, ...] = ()


# The API server reads its users once, at its start. None but the admin and the programs of
# Kubernetes itself may do anything until they are given a role.
USERS: Mapping[str, User] = {
    "admin": User("admin", ("system:masters",)),
    "kube-scheduler": User("system:kube-scheduler"),
    "stranger": User("stranger"),
}


class ControlPlane(access.Access):
    """The running programs; `start` makes one."""

    def __init__(self, extra_apiserver_flags: Sequence[str], users: Mapping[str, User]) -> None:
        self._etcd_port, self._peer_port, self._port = processes.free_ports(3)
        folder = Path(tempfile.mkdtemp(prefix="evenkeel-"))
        super().__init__(
            url=f"https://127.0.0.1:{self._port}",
            ca_file=folder / "certificates" / "apiserver.crt",
            tokens={name: f"{name}-{secrets.token_hex(16)}" for name in users},
            folder=folder,
        )
        self._extra_apiserver_flags = tuple(extra_apiserver_flags)
        self._token_file = folder / "tokens.csv"
        with self._token_file.open("w", newline="") as file:
            csv.writer(file).writerows(
                (self.tokens[name], user.name, name, ",".join(user.groups))
                for name, user in users.items()
            )
        self._nursery = processes.Nursery(folder)
        atexit.register(self.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill everything and remove the folder; doing it twice does no harm."""
        self._nursery.close()
        atexit.unregister(self.stop)

    # The API server and its store.

    def start_etcd(self) -> None:
        """Start the store; `start` has done it already."""
        program = build.ensure("etcd")["etcd"]
        ports = {"port": self._etcd_port, "peer_port": self._peer_port}
        self.spawn("etcd", commands.etcd(program, self.folder, **ports))
        # Waiting costs half a second, and if etcd has a problem, that is the one to be shown.
        self.wait_for("etcd", f"http://127.0.0.1:{self._etcd_port}/health")

    def compact(self) -> None:
        """Forget all history in etcd: whoever wants to resume from an older version gets 410."""
        now = self._etcd("range", {"key": "AA=="})["header"]["revision"]
        self._etcd("compaction", {"revision": now, "physical": True})

    def put_into_store(self, key: str, value: object) -> None:
        """Write an object behind the API server's back, with what it would choose by itself, such as the time of creation.

        Args:
            key: as the API server has it ("/registry/pods/default/web"); whoever watches sees the object come.
            value: as the API server would write it; nothing is checked.
        """
        text = json.dumps(value).encode()
        self._etcd("put", {"key": _encode(key), "value": b64encode(text).decode()})

    def empty_store(self, prefix: str) -> None:
        """Delete all objects whose keys begin so, whatever finalizers they have."""
        # The end of the range is the first key that does not begin so.
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        self._etcd("deleterange", {"key": _encode(prefix), "range_end": _encode(end)})

    def _etcd(self, verb: str, body: dict[str, Any]) -> Any:
        """A call through etcd's JSON gateway."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._etcd_port}/v3/kv/{verb}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def start_apiserver(self) -> None:
        """Start the API server on its port, and wait until it is ready to be used."""
        command = commands.kube_apiserver(
            build.ensure("kube-apiserver")["kube-apiserver"],
            self.folder,
            port=self._port,
            etcd_port=self._etcd_port,
            tokens=self._token_file,
            extra=self._extra_apiserver_flags,
        )
        self.spawn("kube-apiserver", command)
        self.wait_for("kube-apiserver", f"{self.url}/readyz")
        # Ready does not mean that this one has been made, and whatever is tried first needs it.
        self.wait_for("kube-apiserver", f"{self.url}/api/v1/namespaces/default")

    def stop_apiserver(self) -> None:
        """Kill the API server, as a crash would."""
        self.kill("kube-apiserver")

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again: same address, certificate, tokens and data."""
        self.stop_apiserver()
        self.start_apiserver()

    # Its peers.

    def start_scheduler(
        self,
        *,
        qps: float = 5000,
        burst: int = 5000,
        config: Mapping[str, Any] | None = None,
        extra_flags: Sequence[str] = (),
    ) -> str:
        """Start the real kube-scheduler; return its address, which serves /metrics.

        Args:
            qps: requests a second that its client allows itself; its own default is 50.
            burst: how many of them may come at once; its own default is 100.
            config: top-level fields of its configuration, such as profiles or parallelism.
            extra_flags: more flags, such as -v=2.
        """
        (port,) = processes.free_ports(1)
        kubeconfig = self.kubeconfig(token=self.tokens["kube-scheduler"])
        command = commands.kube_scheduler(
            build.ensure("kube-scheduler")["kube-scheduler"],
            self.folder,
            port=port,
            config=commands.scheduler_config(kubeconfig, qps=qps, burst=burst, changes=config),
            extra=extra_flags,
        )
        self.spawn("kube-scheduler", command)
        self.wait_for("kube-scheduler", f"https://127.0.0.1:{port}/readyz")
        return f"https://127.0.0.1:{port}"

    def start_controller_manager(
        self,
        controllers: Sequence[str] = commands.CONTROLLERS,
        *,
        extra_flags: Sequence[str] = (),
    ) -> str:
        """Start the real kube-controller-manager with the named controllers only."""
        (port,) = processes.free_ports(1)
        command = commands.kube_controller_manager(
            build.ensure("kube-controller-manager")["kube-controller-manager"],
            self.folder,
            port=port,
            kubeconfig=self.kubeconfig(),
            controllers=controllers,
            extra=extra_flags,
        )
        self.spawn("kube-controller-manager", command)
        self.wait_for("kube-controller-manager", f"https://127.0.0.1:{port}/healthz")
        return f"https://127.0.0.1:{port}"

    def start_kwok(
        self,
        *,
        user: str = "admin",
        stages: Path = commands.STAGES,
        extra_flags: Sequence[str] = (),
    ) -> str:
        """Start kwok, which plays the kubelet of every node as the stages say."""
        (port,) = processes.free_ports(1)
        command = commands.kwok(
            build.ensure("kwok")["kwok"],
            port=port,
            kubeconfig=self.kubeconfig(token=self.tokens[user]),
            stages=stages,
            extra=extra_flags,
        )
        self.spawn("kwok", command)
        self.wait_for("kwok", f"http://127.0.0.1:{port}/readyz")
        return f"http://127.0.0.1:{port}"

    # Any child.

    def spawn(
        self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> processes.Process:
        """Start any program as one of ours: logged, measured, and killed with the rest."""
        return self._nursery.spawn(name, command, env)

    def kill(self, name: str) -> None:
        """Kill one of the programs, by its name ("kube-scheduler")."""
        self._nursery.kill(name)

    def terminate(self, name: str) -> None:
        """End one of the programs as it should be ended, by its name."""
        self._nursery.terminate(name)

    def logs(self, name: str) -> str:
        """Return all that a program has logged, over its restarts."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def is_running(self, name: str) -> bool:
        """Tell whether a program has not ended."""
        return self._nursery.children[name].is_running()

    def rss(self, name: str) -> int:
        """Return a program's resident memory in bytes (Linux only)."""
        return self._nursery.children[name].rss()

    def cpu_seconds(self, name: str) -> float:
        """Return the CPU time that a program has used since its last start (Linux only)."""
        return self._nursery.children[name].cpu_seconds()

    def wait_for(self, name: str, url: str) -> None:
        """Return once the program answers there with 200; raise if it ends or takes too long."""
        child = self._nursery.children[name]
        gives_up_at = time.monotonic() + READY_SECONDS
        while not access.is_ok(url, self.token):
            if not child.is_running():
                code = child.popen.returncode
                raise StartError(f"{name} ended with code {code}:\n{child.tail()}")
            if time.monotonic() > gives_up_at:
                took = f"{READY_SECONDS:.0f} s"
                raise StartError(f"{name} was not ready after {took}:\n{child.tail()}")
            time.sleep(_POLL_SECONDS)


def _encode(key: str) -> str:
    return b64encode(key.encode()).decode()


def start(
    *, extra_apiserver_flags: Sequence[str] = (), users: Mapping[str, User] | None = None
) -> ControlPlane:
    """Start etcd and kube-apiserver, building them first if need be, and wait until ready.

    Args:
        extra_apiserver_flags: appended to those in `commands`, so they win where a flag repeats.
        users: who else there is, by a short name under which `tokens` holds their token.

    Raises:
        BuildError: a program is missing and cannot be built here.
        StartError: a program did not come up.
    """
    build.ensure("etcd", "kube-apiserver", "kubectl")
    plane = ControlPlane(extra_apiserver_flags, {**USERS, **(users or {})})
    try:
        plane.start_etcd()
        plane.start_apiserver()
    except BaseException:
        plane.stop()
        raise
    return plane
