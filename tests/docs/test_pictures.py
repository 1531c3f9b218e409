"""The picture of the audit's page shows what the audit says of the cluster that it is drawn of."""

import importlib
import re
from pathlib import Path

from tests.docs import blocks


def test_the_fleet_is_as_the_readme_describes_it(tmp_path: Path) -> None:
    page = importlib.import_module("docs.pictures.draw").audit_page(tmp_path)
    pools = [pool.partition("<details")[0] for pool in page.split("<h3>")[1:]]
    counts = [list(map(int, re.findall(r">(\d+) nodes?: ", pool))) for pool in pools]
    assert [sum(pool) for pool in counts] == [180, 20]
    half, quarter, less, usable, full, closed = counts[0]
    readme = (blocks.ROOT / "README.md").read_text(encoding="utf-8")
    told = re.search(r'src="docs/pictures/fleet.png"[^>]* alt="([^"]+)"', readme)
    assert told
    assert re.findall(r"\d+", told[1]) == [
        str(n) for n in (200, half + quarter + less, usable, full, closed)
    ]
