"""Draw the pictures of the docs anew: ``make pictures``.

``demo.svg`` is what ``make demo`` shows, ``fleet.png`` the headline and the fleet of the audit's page in a browser, of the
cluster in ``fleet``, ``weighed.svg`` what ``evenkeel explain`` says about the pod in ``docs/examples/weighed.yaml``, and
``replay.png`` what ``evenkeel replay --plot`` draws. What a picture needs and is not here is
said, and the picture left as it is. ``dashboard.png`` is drawn by ``bench/dashboard.py``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from docs.pictures import fleet, weighed
from scheduler.demo import run
from tests.unit import browser

_FOLDER = Path(__file__).parent
_ROOT = _FOLDER.parents[1]
# Two nodes side by side.
_COLUMNS = 130
# CSS pixels: as wide as GitHub shows a picture in a README, and drawn twice as fine.
_WIDTH, _SCALE = 860, 2
_BELOW_THE_FLEET = "<h2>In total</h2>"
_TELL_HEIGHT = (
    "<script>document.body.dataset.height = document.documentElement.scrollHeight</script>"
)
_REPLAY = ("--mode", "keel,fgd,best-fit", "--seeds", "42..43", "--jobs", "2")


def demo(folder: Path) -> None:
    """Write ``demo.svg`` into a folder.

    Raises:
        SystemExit: a pattern did not come out as it should.
    """
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), color_system="truecolor")
    if not asyncio.run(run.run_demo(console, keep=False)):
        raise SystemExit("the demo did not come out as expected")
    drawn = console.export_svg(title="make demo", theme=MONOKAI)
    # A picture asks nobody on the network for a font.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    (folder / "demo.svg").write_text(drawn, encoding="utf-8")


def audit_page(folder: Path) -> str:
    """Audit the cluster of ``fleet`` in a folder, as a user would; return the page's headline and fleet."""
    cluster = {"apiVersion": "v1", "kind": "List", "items": fleet.objects()}
    (folder / "cluster.yaml").write_text(json.dumps(cluster), encoding="utf-8")
    _evenkeel(folder, "audit", "-f", "cluster.yaml", "-o", "html", "--output-file", "audit.html")
    page = (folder / "audit.html").read_text(encoding="utf-8")
    upper, below, _ = page.partition(_BELOW_THE_FLEET)
    if not below:
        raise SystemExit(f"the audit's page has no {_BELOW_THE_FLEET} to end the picture at")
    return re.sub(r'<p class="advice">.*?</p>', "", upper, flags=re.DOTALL)


def audit(folder: Path) -> None:
    """Write ``fleet.png`` into a folder.

    Raises:
        NoBrowserError: there is none.
    """
    browser.path()
    with tempfile.TemporaryDirectory() as named:
        scratch = Path(named)
        page = scratch / "upper.html"
        page.write_text(audit_page(scratch) + _TELL_HEIGHT, encoding="utf-8")
        told = browser.run(scratch, f"--window-size={_WIDTH},100", "--dump-dom", page.as_uri())
        found = re.search(r'data-height="(\d+)"', told)
        if not found:
            raise SystemExit("the browser does not report how high the audit's page is")
        browser.run(
            scratch, f"--window-size={_WIDTH},{found[1]}", f"--force-device-scale-factor={_SCALE}",
            f"--screenshot={folder / 'fleet.png'}", page.as_uri(),
        )  # fmt: skip


def replay(folder: Path) -> None:
    """Write ``replay.png`` into a folder."""
    _evenkeel(_ROOT, "replay", "bench/data/openb", *_REPLAY, "--plot", str(folder / "replay.png"))


def main() -> None:
    """Draw all that can be drawn here."""
    demo(_FOLDER)
    (_FOLDER / "weighed.svg").write_text(weighed.drawn(), encoding="utf-8")
    try:
        audit(_FOLDER)
    except browser.NoBrowserError as missing:
        print(f"fleet.png stays as it is: {missing}")
    if importlib.util.find_spec("matplotlib") is None:
        print("replay.png stays as it is: needs matplotlib (pip install --editable '.[plot]')")
    else:
        replay(_FOLDER)


def _evenkeel(folder: Path, *arguments: str) -> None:
    _run([sys.executable, "-m", "scheduler", *arguments], folder)


def _run(command: list[str], folder: Path = _ROOT) -> str:
    # Of this checkout, whatever is installed.
    env = {**os.environ, "PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}\nended with {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
