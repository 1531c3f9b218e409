"""Kueue's controllers and scheduler on a real API server, with a gate before the scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

from tests.controlplane import build, plane, processes

Json = dict[str, Any]

NAME = "kueue"
MODULE = "sigs.k8s.io/kueue"
_CRDS = "config/components/crd/bases"
_LOG_END = 4_000
# As many requests as it likes: what is to be seen is the order, not the pace.
_UNLIMITED = {"qps": 5_000, "burst": 5_000}


class EndedError(RuntimeError):
    """It has ended by itself; the text is the end of its log."""


class Seen(msgspec.Struct, frozen=True):
    """What the gate tells.

    Attributes:
        cycles: in how many cycles the scheduler has looked for heads; it stands still once there is nothing to do.
        pending: by ClusterQueue, how many workloads wait in it.
        parked: how many of them are not tried again before something changes.
    """

    cycles: int
    pending: Mapping[str, int]
    parked: Mapping[str, int]


class Program:
    """Kueue, which may be started again and again on one control plane."""

    def __init__(self, control: plane.ControlPlane, session: aiohttp.ClientSession) -> None:
        """``session``: for the gate, without a base URL."""
        self._control, self._session = control, session
        self._gate = ""

    def start(
        self, settings: Mapping[str, Any], *, has_gate: bool = True, has_jobs: bool = False
    ) -> None:
        """Start it, and wait until its caches are full; the gate is closed.

        Args:
            settings: top-level fields of its Configuration, such as fairSharing or featureGates.
            has_gate: without a gate it goes by the real clock.
            has_jobs: it also manages Jobs.

        Raises:
            StartError: it did not come up.
        """
        gate, health = (f"127.0.0.1:{port}" for port in processes.free_ports(2))
        self._gate = f"http://{gate}"
        config = self._control.folder / "kueue.json"
        config.write_text(json.dumps(make_config(settings), indent=1))
        command: list[str | Path] = [
            build.ensure(NAME)[NAME],
            f"--kubeconfig={self._control.kubeconfig()}",
            f"--config={config}",
            f"--health-probe-bind-address={health}",
            *([f"--gate={gate}"] if has_gate else []),
            *(["--jobs"] if has_jobs else []),
        ]
        self._control.spawn(NAME, command)
        self._control.wait_for(NAME, f"http://{health}/readyz")

    def kill(self) -> None:
        """Kill it; what it knows beside the API server is gone."""
        self._control.kill(NAME)

    async def open_gate(self, now: int) -> Seen:
        """Let the scheduler go on, at a time in seconds since 1970 that stands still.

        Raises:
            EndedError: it is not there any more; so do the others.
        """
        return await self._ask("POST", f"/open?now={now}")

    async def close_gate(self) -> Seen:
        """Keep the scheduler from its queues; a cycle that has begun is finished."""
        return await self._ask("POST", "/close")

    async def look(self) -> Seen:
        """Ask the gate what it sees."""
        return await self._ask("GET", "/")

    async def _ask(self, method: str, path: str) -> Seen:
        try:
            async with self._session.request(method, self._gate + path) as answer:
                answer.raise_for_status()
                return msgspec.json.decode(await answer.read(), type=Seen)
        except aiohttp.ClientError as error:
            raise EndedError(self._control.logs(NAME)[-_LOG_END:]) from error


def make_config(settings: Mapping[str, Any]) -> Json:
    """Kueue's Configuration; what is given replaces whole top-level fields."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "clientConnection": _UNLIMITED,
        **settings,
    }


def read_crds() -> Iterator[Json]:
    """Kueue's CustomResourceDefinitions as its module has them, in the version that is stored alone.

    The older version would be converted by a webhook, which nobody serves here.
    """
    for path in sorted((build.find_sources(NAME, MODULE) / _CRDS).glob("*.yaml")):
        crd = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
        crd["spec"].pop("conversion", None)
        crd["spec"]["versions"] = [one for one in crd["spec"]["versions"] if one["storage"]]
        yield crd


# The schemas of pods are long; libyaml reads them in a tenth of the time.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@contextmanager
def start_plane() -> Iterator[plane.ControlPlane]:
    """A control plane of its own that knows Kueue's kinds, without Kueue.

    Raises:
        BuildError: a program is missing and cannot be built here.
        StartError: a program did not come up.
    """
    build.ensure(NAME)
    with plane.start() as control:
        for crd in read_crds():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            answer = control.request("POST", path, crd)
            if answer.status >= 400:
                raise plane.StartError(f"{crd['metadata']['name']}: {answer.body}")
        version = crd["spec"]["versions"][0]["name"]
        for plural in ("clusterqueues", "workloads"):
            control.wait_for(
                "kube-apiserver", f"{control.url}/apis/{crd['spec']['group']}/{version}/{plural}"
            )
        yield control
