"""docs/reasons.md has every reason that there is, and no other."""

import re
from pathlib import Path

from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.cycle import diagnosis, explain
from scheduler.plugins import table
from tests import make
from tests.model import mixed_fleet

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_every_reason_has_a_heading_and_every_heading_is_a_reason() -> None:
    headings = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    reasons = [explain.NO_NODES, *table.texts(), *CARD_CODES.values()]
    assert sorted(headings) == sorted(reasons)
    assert CARD_CODES.keys() == set(CardRefusal)


def test_what_pods_are_told_on_a_mixed_fleet_is_in_the_table() -> None:
    known = [re.escape(text).replace(r"\{\}", ".+") for text in table.texts()]
    cluster = make.cluster(nodes=mixed_fleet.nodes(), pods=mixed_fleet.running())
    cycle = make.cycle(cluster=cluster)
    seen = set()
    for pod in mixed_fleet.pending():
        record = cluster.see_pod(pod)
        assert record is not None
        (hold,) = cycle.schedule([record]).holds
        assert hold.diagnosis is not None
        assert hold.diagnosis.n_nodes == diagnosis.all_rows(cluster).size
        seen |= {text for text, _ in hold.diagnosis.reasons}
        for detail in hold.diagnosis.details:
            assert detail.about in CARD_CODES.values() or detail.about in seen
    assert len(seen) > 6
    assert all(any(re.fullmatch(one, text) for one in known) for text in seen)
