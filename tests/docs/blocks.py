"""What a page of the documentation has in fences: its commands with what they print, and its YAML.

In a ``console`` block a line with ``$ `` in front is a command, ``\\`` at its end goes on in the next line, and
the lines after it are what it prints, if any are shown. ``…`` stands for any text in a line, or alone in it for
any number of lines. A comment of HTML before a block, which readers do not see, says what to do with it:

    <!-- not run: the reason -->
    <!-- run with: --seeds 42 for --seeds 42..51; … -->
    <!-- yaml: what it is a part of -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    ROOT / path
    for pattern in ("*.md", "docs/**/*.md", "manifests/*/*.md", "bench/data/*/*.md")
    for path in ROOT.glob(pattern)
)
_FENCE = re.compile(r"^( *)```(\S*)$")
_NOTE = re.compile(r"<!-- (not run|run with|yaml): (.+?) -->")


@dataclass(frozen=True, slots=True)
class Step:
    """A command and the lines that it prints, none where the page shows none."""

    command: str
    printed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A fence of a page.

    Attributes:
        page: the file.
        line: of the opening fence, from 1.
        language: the word after the fence.
        text: what is inside.
        notes: by their kind, what comments right before it say.
    """

    page: Path
    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def place(self) -> str:
        """Where it is, as an editor opens it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its commands as they are shown.

        Raises:
            ValueError: something is shown before the first command.
        """
        return tuple(_steps(self))

    @property
    def steps_to_run(self) -> tuple[Step, ...]:
        """Its commands with the changes that its comment asks for; none where it is not to be run.

        Raises:
            ValueError: a change changes nothing.
        """
        if "not run" in self.notes:
            return ()
        steps = self.steps
        for change in filter(None, self.notes.get("run with", "").split("; ")):
            new, _, old = change.partition(" for ")
            if not any(old in step.command for step in steps):
                raise ValueError(f"{self.place}: no command has {old!r}")
            steps = tuple(replace(step, command=step.command.replace(old, new)) for step in steps)
        return steps


def of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    opened: tuple[int, str, str] | None = None
    notes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened = (number, fence[1], fence[2])
        elif opened is not None and line == f"{opened[1]}```":
            # In a list the whole block stands further to the right.
            start, indent, language = opened
            text = "\n".join(one.removeprefix(indent) for one in lines[start : number - 1])
            yield Block(page, start, language, text, notes)
            opened, notes = None, {}
        elif opened is None and (found := _NOTE.fullmatch(line.strip())):
            notes = {**notes, found[1]: found[2]}
        elif opened is None and line:
            notes = {}


def _steps(block: Block) -> Iterator[Step]:
    command, printed = "", list[str]()
    for line in block.text.splitlines():
        if command.endswith("\\"):
            command += f"\n{line}"
        elif line.startswith("$ "):
            if command:
                yield Step(command, tuple(printed))
            command, printed = line.removeprefix("$ "), []
        elif command:
            printed.append(line)
        else:
            raise ValueError(f"{block.place}: {line!r} stands before the first command")
    if command:
        yield Step(command, tuple(printed))


def agrees(shown: tuple[str, ...], printed: str) -> bool:
    """Whether a command printed what the page shows; blanks at the ends of lines count for nothing."""
    parts = (r"(?:.*\n)*?" if line.strip() == "…" else _line(line) for line in shown)
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(parts), text) is not None


def _line(shown: str) -> str:
    return ".*".join(re.escape(part) for part in shown.rstrip().split("…")) + r"\n"
