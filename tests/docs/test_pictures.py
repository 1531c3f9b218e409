"""Pictures show what the audit and the explanation say of the clusters that they are drawn of."""

import importlib
import re
from pathlib import Path

from tests.docs import blocks


def test_the_fleet_is_as_the_readme_describes_it(tmp_path: Path) -> None:
    page = importlib.import_module("docs.pictures.draw").audit_page(tmp_path)
    pools = [pool.partition("<details")[0] for pool in page.split("<h3>")[1:]]
    counts = [list(map(int, re.findall(r">[A-Z]. (\d+) (?:node|pod)s?: ", one))) for one in pools]
    assert [sum(pool) for pool in counts[:2]] == [180, 20]
    half, quarter, less, usable, full, closed = counts[0]
    readme = (blocks.ROOT / "README.md").read_text(encoding="utf-8")
    told = re.search(r'src="docs/pictures/fleet.png"[^>]* alt="([^"]+)"', readme)
    assert told
    assert re.findall(r"\d+", told[1]) == [
        str(n) for n in (200, half + quarter + less, usable, full, closed, sum(counts[2]))
    ]


def test_the_placement_weighed_is_what_is_told_of_the_example() -> None:
    picture = blocks.ROOT / "docs" / "pictures" / "weighed.svg"
    drawn = importlib.import_module("docs.pictures.weighed").drawn()
    assert drawn == picture.read_text(encoding="utf-8")
    names = re.findall(r">(node-[a-d])<", drawn)
    page = (blocks.ROOT / "docs" / "placement.md").read_text(encoding="utf-8")
    told = re.search(r"!\[([^\]]+)\]\(pictures/weighed.svg\)", page)
    assert told
    assert re.findall(r"node-[a-d]", told[1]) == names
