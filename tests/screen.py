"""A file that takes itself for a terminal, and what a command writes without what it says of its progress."""

import io

from scheduler import progress


class Screen(io.StringIO):
    """Remembers what was drawn on it."""

    def isatty(self) -> bool:
        """Whether somebody looks."""
        return True


def without_progress(text: str) -> str:
    """On a busy machine what takes a moment takes long, and is told."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(progress.PREFIX))
