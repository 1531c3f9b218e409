"""A real browser, headless, without a driver: what it makes of a page is measured by a script beside the page.

Chromium of Debian's packages is enough. Where no browser is, what needs one fails.
"""

import html
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
# Every frame is a page of its own width, so that its media queries go by it. Text in a picture is as large
# as it comes out, not as it is written.
_MEASURE = """
function measured(frame) {
  const doc = frame.contentDocument, view = frame.contentWindow, width = doc.documentElement.clientWidth;
  const found = {name: frame.name, width, scrolls: doc.documentElement.scrollWidth - width, texts: 0,
                 smallest: 1e9, small: "", wide: [], cut: [], torn: [], stiff: []};
  for (const node of doc.body.querySelectorAll("*")) {
    const style = view.getComputedStyle(node), box = node.getBoundingClientRect();
    if (style.clipPath !== "none" || node.closest("thead") && style.position === "absolute" || !box.width) continue;
    if (box.right > width + 0.5 && !node.closest("[style*='clip']")
        && view.getComputedStyle(node.closest("thead") || node).clipPath === "none")
      found.wide.push(node.tagName + " " + node.textContent.slice(0, 60));
    if (style.overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1)
      found.cut.push(node.tagName + " " + node.textContent.slice(0, 60));
    const isWhole = node.matches("tr, .bars > *, .cells > i, .names li") || node.matches("table, figure") && box.height < 200;
    if (isWhole && style.breakInside !== "avoid")
      found.torn.push(node.tagName + " " + node.textContent.slice(0, 60));
    // A third of a page, less the headings that stay with what follows them.
    if (box.height > 300 && style.breakInside === "avoid")
      found.stiff.push(node.tagName + " " + node.textContent.slice(0, 60));
  }
  const walk = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !parent.getClientRects().length) continue;
    const matrix = parent.getScreenCTM ? parent.getScreenCTM() : null;
    const size = parseFloat(view.getComputedStyle(parent).fontSize) * (matrix ? matrix.a : 1);
    found.texts += 1;
    if (size < found.smallest) { found.smallest = size; found.small = walk.currentNode.data.slice(0, 60); }
  }
  return found;
}
window.addEventListener("load", () => {
  const told = JSON.stringify([...document.querySelectorAll("iframe")].map(measured));
  document.body.textContent = "";
  const out = document.createElement("pre");
  out.id = "measured";
  out.textContent = told;
  document.body.append(out);
});
"""


class NoBrowserError(RuntimeError):
    """None of the browsers that would do is installed."""


def path() -> str:
    """Where the browser is.

    Raises:
        NoBrowserError: there is none.
    """
    found = next((where for name in NAMES if (where := shutil.which(name))), None)
    if found is None:
        raise NoBrowserError(
            f"needs a browser: none of {', '.join(NAMES)} is installed (Debian: apt-get install chromium)"
        )
    return found


def measure(
    page: str, widths: dict[str, int], folder: Path, *, on_paper: bool = False
) -> dict[str, Json]:
    """What the page is like at each width in CSS pixels, by the names given.

    ``scrolls`` says how many pixels it is wider than its window, ``wide`` which elements reach out of it, ``cut``
    which hide or scroll what is in them, ``torn`` which lines and small tables and figures a page break may go
    through, ``stiff`` which take so much of a page that a third of it may be left empty before them, as no break
    may go through them; and ``smallest`` is the size of the smallest of ``texts`` texts.
    ``on_paper`` goes by the styles for print.
    """
    if on_paper:
        assert "@media print" in page
        page = page.replace("@media print", "@media all")
    frames = "".join(
        f'<iframe name="{name}" width="{width}" height="900" style="border:0" srcdoc="{html.escape(page)}"></iframe>'
        for name, width in widths.items()
    )
    wrapper = folder / "measured.html"
    wrapper.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body>{frames}<script>{_MEASURE}</script></body>',
        encoding="utf-8",
    )
    dumped = run(folder, "--virtual-time-budget=20000", "--dump-dom", wrapper.as_uri())
    told = re.search(r'<pre id="measured">(.*?)</pre>', dumped, re.DOTALL)
    assert told, dumped[-500:]
    return {one["name"]: one for one in json.loads(html.unescape(told[1]))}


class Printed(NamedTuple):
    """What a page is on paper.

    Attributes:
        pages: how many sheets it takes.
        scale: that the browser prints at; it shrinks what is too wide.
        filled: of each sheet, how far down its text reaches, as a part of its height.
    """

    pages: int
    scale: float
    filled: list[float]


def printed(page: str, folder: Path) -> Printed:
    """What the browser prints."""
    source, target = folder / "page.html", folder / "page.pdf"
    source.write_text(page, encoding="utf-8")
    run(folder, "--no-pdf-header-footer", f"--print-to-pdf={target}", source.as_uri())
    pdf = target.read_bytes()
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
    scales: list[float] = []
    filled: list[float] = []
    for stream in re.finditer(rb"stream\r?\n", pdf):
        try:
            drawn = zlib.decompressobj().decompress(pdf[stream.end() :])
        except zlib.error:
            continue
        found = re.match(rb"\S+ 0 0 -\S+ 0 \S+ cm\s+q\s+(\S+) 0 0 \1 ", drawn)
        sheet = re.search(rb"\s0 0 \S+ (\S+) re", drawn)
        if found and sheet:
            scales.append(float(found[1]))
            # Places of text go on from sheet to sheet.
            lowest = max(map(float, re.findall(rb"1 0 0 -1 \S+ (\S+) Tm", drawn)), default=0.0)
            filled.append(lowest / float(sheet[1]) - len(filled))
    assert len(scales) == pages, "not every page of the PDF begins as expected"
    return Printed(pages, min(scales), filled)


def run(folder: Path, *arguments: str) -> str:
    """What the browser prints; its profile is in the folder, and new."""
    command = [path(), *_FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
