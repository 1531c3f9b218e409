"""How many kernels are compiled is told while they are."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli, progress
from scheduler.kernels import _cache, compiling
from tests.unit.compiled import needs_jit


@needs_jit
def test_two_processes_fill_a_cache_and_a_start_compiles_only_what_it_lacks(
    tmp_path: Path,
) -> None:
    code = (
        "from scheduler.kernels import compiling; told = [];"
        "rooms = ('charge', 'devices', 'diagnose', 'preempt:sort_by_place', 'rules');"
        "every = compiling.list_kernels();"
        "few = {key: every[key] for key in every if key.split('kernels.')[1].startswith(rooms)};"
        "compiling.list_kernels = lambda: few;"
        "n_missing = len(compiling.list_missing());"
        "compiling.compile_kernels(told.append);"
        "kernels = few.values();"
        "compiled = sum(sum(one.stats.cache_misses.values()) for one in kernels);"
        "print(n_missing, compiling.list_missing(), compiled, told[-1] == len(kernels))"
    )
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = []
    for _ in range(3):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.stderr == ""
        n_missing, rest = done.stdout.split(" ", 1)
        assert rest == "[] 0 True\n"
        found.append(int(n_missing))
        if len(found) == 2:
            # As if somebody had interrupted the first time. The second kernel has one within it that is in the cache.
            for name in ("charge.enter_pod", "diagnose.count_card_codes"):
                [index] = tmp_path.rglob(f"{name}-*.nbi")
                index.unlink()
    assert found == [found[0], 0, 2]
    assert found[0] > 5


def load_few(cache: Path, code: str) -> str:
    """What code prints that has two kernels, one within the other, in a process of its own with this cache."""
    begin = (
        "import llvmlite.binding as llvm; parse, sizes = llvm.parse_bitcode, set();"
        "llvm.parse_bitcode = lambda code: sizes.add(len(code)) or parse(code);"
        "from scheduler.kernels import _cache, compiling;"
        "every = compiling.list_kernels();"
        "names = 'devices.choose:choose_devices', 'diagnose:count_card_codes';"
        "few = {key: every[key] for key in every if key.endswith(names)};"
        "compiling.list_kernels = lambda: few;"
        "misses = lambda: [sum(one.stats.cache_misses.values()) for one in few.values()];"
    )
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "ignore", "-c", begin + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with both kernels of ``load_few``, which took long to compile."""
    folder = tmp_path_factory.mktemp("filled")
    load_few(folder, "compiling.compile_kernels(lambda _: None)")
    return folder


@pytest.fixture
def cache(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(filled, tmp_path / "cache")


@needs_jit
def test_kernels_that_are_all_in_the_cache_are_loaded_without_their_bitcode(cache: Path) -> None:
    code = (
        "uncached = compiling.has_uncached(); loaded = [*compiling.load_kernels()] == [*few];"
        "print(uncached, loaded, misses(), sizes == {len(_cache.NO_BITCODE)})"
    )
    assert load_few(cache, code) == "False True [0, 0] True"


@needs_jit
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["cut short", "empty", "gone"])
def test_a_kernel_whose_file_is_damaged_is_compiled_again_and_kept(
    cache: Path, ending: str, damage: str
) -> None:
    [file] = cache.rglob(f"diagnose.count_card_codes-*.{ending}")
    content = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(content[: len(content) // 2 if damage == "cut short" else 0])
    print_misses = "[*compiling.load_kernels()]; print(misses())"
    assert load_few(cache, print_misses) == "[0, 1]"
    assert load_few(cache, print_misses) == "[0, 0]"


@needs_jit
def test_a_cache_of_another_processor_is_another_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print_uncached = "print(compiling.has_uncached())"
    assert load_few(cache, print_uncached) == "False"
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert load_few(cache, print_uncached) == "True"


def test_a_kernel_has_its_turn_after_those_within_it() -> None:
    within = {key: compiling._list_within(one) for key, one in compiling.list_kernels().items()}
    kernels = "scheduler.kernels"
    assert within[f"{kernels}.place:place_run"] > {
        f"{kernels}.place:put_pod", f"{kernels}.parts:weigh_cards", f"{kernels}.devices.choose:choose_devices"
    }  # fmt: skip
    assert within[f"{kernels}.preempt:sort_by_place"] == set()


@needs_jit
def test_after_warm_no_command_waits_for_the_compiler() -> None:
    """The first `explain` after `warm` took 33 s. In a process of its own: other tests have compiled more."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.warmed"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "-f", "none.yaml"],
        ["explain", "pod", "p", "-f", "none.yaml"],
        ["audit", "-f", "none.yaml"],
        ["replay", "none", "--experiment", "fill"],
        ["rerun", "none.log"],
    ],
)
def test_the_first_command_of_a_version_compiles_with_a_bar_and_not_in_silence(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int]] = []

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Any]:
        shown.append((what, total))
        yield shown.append

    monkeypatch.setattr(compiling, "list_missing", lambda: ["place:place_run"])
    monkeypatch.setattr(compiling, "compile_kernels", lambda _: None)
    monkeypatch.setattr(progress, "show_bar", bar)
    assert CliRunner().invoke(cli.app, command).exit_code != 0
    assert shown == [("kernels compiled", len(compiling.list_kernels()))]


@needs_jit
def test_a_kernel_is_missing_as_long_as_it_is_in_no_cache_that_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel: Any = compiling.list_kernels()["scheduler.kernels.charge:remove_pod"]
    compiling._compile(kernel)
    assert not _cache.is_missing(kernel)
    monkeypatch.setattr(kernel._cache._cache_file, "_index_path", "nowhere.nbi")
    assert _cache.is_missing(kernel)
    assert _cache.is_uncached(kernel)
    # Nothing that is compiled can be kept: each process compiles it anew, and a cache is not to be filled.
    monkeypatch.setattr(_cache, "_folder", None)
    assert _cache.is_uncached(kernel)
    assert not _cache.is_missing(kernel)
    assert compiling.has_uncached()
