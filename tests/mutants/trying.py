"""A copy of the tree, one mistake in it at a time, and tests run in the copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.mutants.belonging import ROOT

# A mistake may make a loop that never ends: found too.
_SECONDS_MAX = 900.0
# All examples are drawn by it; the slice is the same each time.
_SEED = 1
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "dist"
)


class Copy:
    """A copy of the tree in a folder.

    Attributes:
        root: where the copy is.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT)
        (self.root / ".venv").symlink_to(ROOT / ".venv")

    def find_failure(self, path: str, text: str, tests: list[str], *, soak: bool) -> str:
        """Return the first test that fails with that text in the place of a module's; empty: none does.

        One that fails without the mistake too finds nothing, and is left out.
        """
        left_out: list[str] = []
        while failed := self._first_failure(path, text, tests, left_out, soak=soak):
            if "::" not in failed or not self._run([failed], soak=soak):
                return failed
            left_out.append(failed)
        return ""

    def _first_failure(
        self, path: str, text: str, tests: list[str], left_out: list[str], *, soak: bool
    ) -> str:
        place = self.root / path
        before = place.read_text(encoding="utf-8")
        place.write_text(text, encoding="utf-8")
        try:
            return self._run([*tests, *(f"--deselect={one}" for one in left_out)], soak=soak)
        finally:
            place.write_text(before, encoding="utf-8")

    def _run(self, arguments: list[str], *, soak: bool) -> str:
        """Run tests until one fails; what failed, by its name if it has one."""
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "EVENKEEL_SOAK": "1" if soak else "",
        }
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    f"--hypothesis-seed={_SEED}",
                    *arguments,
                ],
                cwd=self.root,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS_MAX,
                check=False,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return "no end"
        named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return "" if not done.returncode else named[1] if named else "the run itself"
