"""A folder like a clone in which ``make demo`` has run, and commands run in it as a reader types them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Collection, Mapping
from pathlib import Path

from scheduler.kernels import _cache
from tests.controlplane import build
from tests.docs import blocks
from tests.screen import without_progress

# What a block asks beyond Python: an API server, its clients, Go, or packages from elsewhere.
_MORE = re.compile(r"\b(kubectl|helm|make chart|make wheel)\b|--(kubeconfig|context) ")
# Files that are the reader's own, and what stands for them here.
_YOURS = {
    "my-pods.yaml": "docs/examples/training.yaml",
    "cluster.json": "docs/examples/nodes.yaml",
    "my-job.yaml": "docs/examples/training.yaml",
    "nodes.yaml": "docs/examples/nodes.yaml",
    "too-big.yaml": "tests/docs/too-big.yaml",
}


def needs_more(block: blocks.Block) -> bool:
    """Whether its commands need more than Python."""
    return any(_MORE.search(step.command) for step in block.steps_to_run)


def clone(folder: Path) -> Path:
    """Make a folder with all that a clone has, by links, and an environment of its own; return it."""
    for entry in blocks.ROOT.iterdir():
        if not entry.name.startswith(".") or entry.name == ".ci":
            (folder / entry.name).symlink_to(entry)
    for name, source in _YOURS.items():
        shutil.copy(blocks.ROOT / source, folder / name)
    environment = folder / ".venv"
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    packages.joinpath("clone.pth").write_text(
        f"{blocks.ROOT}\nimport site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    script = environment / "bin" / "evenkeel"
    script.write_text(
        f"#!{environment}/bin/python\n"
        "import evenkeel_scheduler\n"
        'if __name__ == "__main__":\n'
        "    evenkeel_scheduler.main()\n"
    )
    script.chmod(0o755)
    # As `make` leaves them when all is installed.
    for stamp in (".runtime", ".installed"):
        (environment / stamp).touch()
    return folder


def environment(
    folder: Path, kubeconfig: Path | None = None, programs: Collection[Path] = ()
) -> dict[str, str]:
    """What a reader's shell has: the clone's programs first, and no cluster but the one that is given.

    Of Python's settings and of the make that runs the tests it has none: a make below another one says so.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "COVERAGE", "COV_", "VIRTUAL_ENV", "MAKE", "MFLAGS"))
    }
    paths = [folder / ".venv" / "bin", *(program.parent for program in programs)]
    return kept | {
        "PATH": os.pathsep.join([*map(str, paths), os.environ["PATH"]]),
        "HOME": str(folder),
        "KUBECONFIG": str(kubeconfig or folder / "no-cluster"),
        "EVENKEEL_CACHE": str(build.cache_folder()),
        # Kernels are compiled for the place of their source: the links are not where they are from.
        "PYTHONSAFEPATH": "1",
        **_compiled(),
    }


def _compiled() -> dict[str, str]:
    """Where the kernels are that are compiled already: another home has none."""
    return {"NUMBA_CACHE_DIR": str(_cache._folder.parent)} if _cache._folder is not None else {}


def complaint(block: blocks.Block, folder: Path, env: Mapping[str, str]) -> str:
    """Run the commands of a block, one after another; return what is wrong, empty when nothing is."""
    for step in block.steps_to_run:
        done = subprocess.run(
            ["bash", "-o", "errexit", "-o", "pipefail", "-c", step.command],
            cwd=folder,
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        printed = without_progress(done.stdout)
        said = f"{block.place}: $ {step.command}\n{printed}"
        if done.returncode:
            return f"{said}\nended with {done.returncode}"
        if step.printed and not blocks.agrees(step.printed, printed):
            return f"{said}\nis not what the page shows"
    return ""
