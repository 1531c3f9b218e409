"""What the Dockerfile runs, run: no container can be started here, but its commands can, in a folder.

The commands and the environment are read from the Dockerfile; only the paths are others. What comes
out is then used by somebody who may write nothing of it and has no home, as in a read-only container.
"""

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler.embedded.agents import nodes
from tests.operator import process, servers
from tests.operator.manifests import vgpu
from tests.operator.world import enter

ROOT = Path(__file__).parents[2]
_COMPILED = "is not in the read-only cache"


@dataclass(frozen=True, slots=True)
class Image:
    """The folder that stands for the image's root, and what its processes find in their environment."""

    root: Path
    env: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Run its `evenkeel`; an admin gives up his power to write what is read-only."""
        script = str(self.root / "opt/evenkeel/bin/evenkeel")
        mortal = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
        return [*(mortal if os.getuid() == 0 else ()), script, *arguments]


def _instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word.isupper()]  # fmt: skip


def _build(root: Path) -> Image:
    """Carry out the Dockerfile below a folder, each stage in the same one."""
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "PYTHON"))
    }
    source = root / "src"
    source.mkdir()

    def here(text: str) -> str:
        return text.replace("/opt/", f"{root}/opt/")

    for word, rest in _instructions():
        if word == "ENV":
            given = (pair.partition("=") for pair in shlex.split(rest))
            env |= {key: here(value).replace("$PATH", env["PATH"]) for key, _, value in given}
        elif word == "COPY" and not rest.startswith("--from"):
            *names, target = rest.split()
            for name in names:
                if (ROOT / name).is_dir():
                    ignore = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(ROOT / name, source / target, ignore=ignore)
                else:
                    shutil.copy(ROOT / name, source / target)
        elif word == "RUN":
            done = subprocess.run(
                here(rest).replace("python -m venv", f"{sys.executable} -m venv"),
                shell=True, cwd=source, env=env, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{rest}\n{done.stdout}{done.stderr}"
    shutil.rmtree(source)
    return Image(root, env | {"HOME": "/nonexistent"})


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    root = tmp_path_factory.mktemp("image")
    built = _build(root)
    files = [root, *root.rglob("*")]
    for path in files:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield built
    for path in files:
        if path.is_dir() and not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


def _files(image: Image) -> set[tuple[Path, int]]:
    return {(path, path.lstat().st_mtime_ns) for path in image.root.rglob("*")}


def test_nothing_is_compiled_where_nothing_can_be_written(image: Image) -> None:
    """Without its cache a container takes a minute until it answers its probes."""
    before = _files(image)
    done = subprocess.run(
        image.command("warm"), env=image.env, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert _COMPILED not in done.stderr
    assert _files(image) == before


def test_what_the_image_does_not_bring_is_compiled_and_told(image: Image) -> None:
    """Else nobody would know why a start takes a minute; and the tests here would see nothing."""
    code = (
        "import numpy as np; from scheduler.kernels.modes import filling;"
        "filling.find_fillings(np.ones(1, np.int32), np.ones(1), np.zeros(2))"
    )
    python = [*image.command()[:-1], str(image.root / "opt/evenkeel/bin/python")]
    done = subprocess.run(
        [*python, "-c", code], env=image.env, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "find_fillings at 0x" in done.stderr
    assert _COMPILED in done.stderr


async def test_it_schedules_from_there(image: Image) -> None:
    with servers.embedded() as server:
        async with enter(server) as world:
            operator = process.Operator(server, program=image.command(), env=image.env)
            world.operators.append(operator)
            await world.create(nodes.make_gpu_node("g"), vgpu("p"))
            await world.bound("p", seconds=120)
            assert _COMPILED not in operator.log
