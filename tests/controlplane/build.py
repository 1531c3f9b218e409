"""Build the programs of a control plane from their Go modules, once.

`python -m tests.controlplane.build [names…]` builds what is named, by default all that the tests
can use; `--all` adds what only people use. The results live outside the tree, in a folder whose
name covers everything that decides what comes out: a changed go.mod, go.sum, flag or Go makes a
new folder, everything else is found where it was left.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_GO = (1, 26)
MODULES = Path(__file__).parent / "tools"
NO_CGO = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")

BOTH_WAYS = (
    f"Either install Go {'.'.join(map(str, OLDEST_GO))} or later (https://go.dev/dl/), and it is"
    " built from source, which takes some minutes the first time; or set KUBEBUILDER_ASSETS to a"
    " folder that has it (https://book.kubebuilder.io/reference/envtest has ready-made ones)."
)


class BuildError(RuntimeError):
    """A program could neither be found nor built; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: the module folder that pins it, and the package that is its command, or whose tests are."""

    module: str
    package: str
    variables: tuple[tuple[str, str], ...] = ()
    is_for_tests: bool = True
    is_suite: bool = False

    @property
    def verb(self) -> tuple[str, ...]:
        """What Go is told to do: the tests of a package are a program too."""
        return ("test", "-c") if self.is_suite else ("build",)

    def flags(self) -> list[str]:
        """Tell `go build` how to build this one; symbol tables are left out to save half."""
        stamps = (f"-X {name}={value}" for name, value in self.variables)
        return [*FLAGS, "-ldflags", " ".join(("-s", "-w", *stamps))]


def kubernetes_version() -> str:
    """Return the version that the module pins, as in "v1.37.1"."""
    return _pinned("kubernetes", "k8s.io/kubernetes")


def _pinned(module: str, dependency: str) -> str:
    _, _, rest = (MODULES / module / "go.mod").read_text().partition(f"{dependency} v")
    return "v" + rest.split()[0]


def _kubernetes(name: str) -> Tool:
    return Tool(
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        variables=_version_stamps(kubernetes_version()),
    )


def _suite() -> Tool:
    """Kubernetes' own end-to-end suite."""
    return Tool(
        module="e2e",
        package="k8s.io/kubernetes/test/e2e",
        variables=_version_stamps(_pinned("e2e", "k8s.io/kubernetes")),
        is_for_tests=False,
        is_suite=True,
    )


def _version_stamps(version: str) -> tuple[tuple[str, str], ...]:
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = "k8s.io/component-base/version."
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return tuple((stamp + key, value) for key, value in values.items())


def _helm() -> Tool:
    """Helm renders for the Kubernetes of its client library, and says so only when stamped."""
    _, minor, _ = _pinned("helm", "k8s.io/client-go").split(".")
    helm = "helm.sh/helm/v3/"
    values = {
        f"{helm}internal/version.version": _pinned("helm", "helm.sh/helm/v3"),
        f"{helm}pkg/chartutil.k8sVersionMajor": "1",
        f"{helm}pkg/chartutil.k8sVersionMinor": minor,
        f"{helm}pkg/lint/rules.k8sVersionMajor": "1",
        f"{helm}pkg/lint/rules.k8sVersionMinor": minor,
    }
    return Tool(module="helm", package=f"{helm}cmd/helm", variables=tuple(values.items()))


TOOLS = {
    "etcd": Tool(module="etcd", package="go.etcd.io/etcd/server/v3"),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kubectl": _kubernetes("kubectl"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kwok": Tool(module="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
    "helm": _helm(),
    "promql": Tool(module="promql", package="."),
    "dra-allocator": Tool(module="dra-allocator", package="."),
    "e2e.test": _suite(),
    "kind": Tool(module="kind", package="sigs.k8s.io/kind", is_for_tests=False),
    "kueue": Tool(module="kueue", package="."),
    "dra-cel": Tool(module="dra-cel", package="."),
}


def ensure(*names: str) -> dict[str, Path]:
    """Return where each named program is, after building those that are not there yet."""
    found = {name: path for name in names if (path := _ready_made(name))}
    missing = [name for name in names if name not in found]
    if not missing:
        return found
    go = _go(missing)
    places = {name: _place(name, go) for name in missing}
    if not all(path.exists() for path in places.values()):
        with _alone():
            for name, path in places.items():
                if not path.exists():  # whoever held the lock before us may have built it
                    _build(name, path)
    return found | places


def find_sources(module: str, dependency: str) -> Path:
    """Return the folder where Go keeps the sources of a dependency, as a tool's module pins it; they are fetched if need be.

    Raises:
        BuildError: Go cannot fetch them, or there is none.
    """
    _go([f"what belongs to {dependency}"])
    asked = subprocess.run(
        ["go", "mod", "download", "-json", dependency],
        cwd=MODULES / module,
        env=os.environ | NO_CGO,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        raise BuildError(f"{dependency} cannot be fetched: {asked.stdout}{asked.stderr}")
    return Path(json.loads(asked.stdout)["Dir"])


def cache_folder() -> Path:
    """Return the folder that keeps what was built."""
    if chosen := os.environ.get("EVENKEEL_CACHE"):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "evenkeel"


def _ready_made(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        return None
    path = Path(assets).absolute() / name
    return path if os.access(path, os.X_OK) else None


def _go(missing: list[str]) -> str:
    """Return what `go version` says, once it is sure that it can build what is missing."""
    wanted = f"{', '.join(missing)} cannot be built here"
    if not shutil.which("go"):
        raise BuildError(f"{wanted}: there is no Go on the PATH. {BOTH_WAYS}")
    # Asked inside a module, Go first fetches the toolchain that the module wants, if it may.
    asked = subprocess.run(
        ["go", "version"],
        cwd=MODULES / "kubernetes",
        env=os.environ | NO_CGO,
        capture_output=True,
        text=True,
        check=False,
    )
    version = re.search(r"\bgo(\d+)\.(\d+)", asked.stdout)
    if asked.returncode or not version:
        raise BuildError(f"{wanted}: `go version` failed: {asked.stderr.strip()}\n{BOTH_WAYS}")
    if (int(version[1]), int(version[2])) < OLDEST_GO:
        raise BuildError(f"{wanted}: this Go is too old ({asked.stdout.strip()}). {BOTH_WAYS}")
    return asked.stdout.strip()


def _place(name: str, go: str) -> Path:
    tool = TOOLS[name]
    digest = hashlib.sha256()
    sources = sorted((MODULES / tool.module).glob("*.go"))
    for part in (
        (MODULES / tool.module / "go.mod").read_text(),
        (MODULES / tool.module / "go.sum").read_text(),
        *(source.read_text() for source in sources),
        *tool.flags(),
        go,
    ):
        digest.update(part.encode() + b"\0")
    return cache_folder() / "controlplane" / f"{tool.module}-{digest.hexdigest()[:12]}" / name


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock under which one process at a time builds."""
    lock = cache_folder() / "controlplane" / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another build (it holds {lock}) …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(name: str, path: Path) -> None:
    tool = TOOLS[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    _say(f"{name}: building {tool.package} …")
    began_at = time.monotonic()
    unfinished = path.with_name(f".{name}.unfinished")  # the lock is held: no other writes it
    built = subprocess.run(
        ["go", *tool.verb, *tool.flags(), "-o", str(unfinished), tool.package],
        cwd=MODULES / tool.module,
        env=os.environ | NO_CGO,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        tail = "\n".join(built.stderr.splitlines()[-30:])
        raise BuildError(f"Building {name} failed:\n{tail}\n{BOTH_WAYS}")
    unfinished.replace(path)
    _say(f"{name}: built in {time.monotonic() - began_at:.0f} s")


def _say(line: str) -> None:
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


def main(arguments: Iterable[str] | None = None) -> int:
    """Build from the command line; print where each program is."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.build")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(TOOLS))
    parser.add_argument(
        "--all", action="store_true", help="also what no cluster test needs (e2e.test, kind)"
    )
    chosen = parser.parse_args(list(arguments) if arguments is not None else None)
    if unknown := sorted(set(chosen.names) - set(TOOLS)):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(TOOLS)}")
    default = [name for name, tool in TOOLS.items() if chosen.all or tool.is_for_tests]
    try:
        for name, path in ensure(*(chosen.names or default)).items():
            print(f"{name}\t{path}")
    except BuildError as error:
        _say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
