"""Draw the pictures of the docs anew: ``make pictures``.

The demo is run as ``make demo`` runs it, and what it shows becomes ``demo.svg``.
"""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from scheduler.demo import run

_FOLDER = Path(__file__).parent
# Two nodes side by side.
_COLUMNS = 130


def draw(folder: Path) -> None:
    """Write the pictures into a folder.

    Raises:
        SystemExit: a pattern did not come out as it should.
    """
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), color_system="truecolor")
    if not asyncio.run(run.demo(console, keep=False)):
        raise SystemExit("the demo did not come out as expected")
    drawn = console.export_svg(title="make demo", theme=MONOKAI)
    # A picture asks nobody on the network for a font.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    (folder / "demo.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    draw(_FOLDER)
