"""ImageLocality against its twin, while nodes come, go and pull images."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.state.cluster import Cluster
from scheduler.state.images import ImageTable
from scheduler.telling import verdicts
from tests import make, slices
from tests.model import peer_objects as objects
from tests.model import peer_worlds as worlds
from tests.oracles import image_locality as twin

Json = dict[str, Any]
NAMES = st.sampled_from([f"n{i}" for i in range(80)])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, dict[str, int] | None]]:
    """Of nodes by name what images they have from then on, in MiB by name; None: the node is gone."""
    return draw(st.lists(st.tuples(NAMES, st.none() | worlds.IMAGES), min_size=1, max_size=30))


IMAGES = st.lists(st.sampled_from(["a", "a:1", "b", "reg:5/c"]), min_size=1, max_size=3)


@settings(max_examples=slices.count_examples(100), deadline=None)
@given(history=histories(), images=IMAGES)
def test_images_score_as_the_twin_says_after_every_change_of_any_node(
    history: list[tuple[str, dict[str, int] | None]], images: list[str]
) -> None:
    cluster, there = Cluster(), dict[str, Json]()
    cycle = make.cycle(cluster=cluster)
    pod = objects.pod(images=images)
    record = cluster.see_pod(msgspec.convert(pod, wire.Pod))
    assert record is not None
    for name, has in history:
        if has is None:
            there.pop(name, None)
            cluster.drop_node(name)
        else:
            there[name] = objects.node(name, images=has)
            cluster.see_node(msgspec.convert(there[name], wire.Node))
        told = verdicts.judge_nodes(cluster, cycle, record).nodes
        expected = twin.scores(pod, list(there.values()))
        assert {node: said["scores"]["ImageLocality"] for node, said in told.items()} == expected
        anew = verdicts.judge_nodes(cluster, make.cycle(cluster=cluster), record).nodes
        assert {node: said["total"] for node, said in told.items()} == {
            node: said["total"] for node, said in anew.items()
        }


def test_images_of_nodes_that_are_gone_are_forgotten() -> None:
    table = ImageTable()
    kept = table.change_images(1, (), (("a", 1), ("b", 2)))
    assert kept[0] is table.change_images(2, (), (("a", 1),))[0]
    there = table.change_images(2, (("a", 1),), (("a", 3), ("c", 1)))
    rows, sizes = table.find_nodes("a")
    assert dict(zip(rows.tolist(), sizes.tolist(), strict=True)) == {1: 1, 2: 3}
    version = table.version
    assert table.change_images(2, there, (("a", 3), ("c", 1))) is there
    assert table.version == version
    table.change_images(1, kept, ())
    table.change_images(2, there, ())
    assert len(table) == 0
    assert table._shared == {}
