"""The twin of ImageLocality against worked examples of kube-scheduler 1.37.1's own tests."""

from typing import Any

import pytest

from tests.model import peer_objects as objects
from tests.oracles import image_locality as twin

Json = dict[str, Any]


def node(name: str, *images: int) -> Json:
    """Images are named after their size in MiB."""
    return objects.node(name, images={f"gcr.io/{mib}:latest": mib for mib in images})


def pod(*images: int, **more: Any) -> Json:
    return objects.pod(images=[f"gcr.io/{mib}" for mib in images], **more)


def volume(mib: int) -> Json:
    return {"volumes": [{"name": "v", "image": {"reference": f"gcr.io/{mib}"}}]}


def init(mib: int) -> Json:
    return {"initContainers": [{"name": "i", "image": f"gcr.io/{mib}"}]}


# From TestImageLocalityPriority (image_locality_test.go), by its names.
CASES: dict[str, tuple[Json, list[tuple[int, ...]], list[int]]] = {
    "two images spread on two nodes, prefer the larger image one": (pod(40, 250), [(40, 300, 2000), (250, 10)], [0, 5]),
    "two images on one node, prefer this node": (pod(40, 300), [(40, 300, 2000), (250, 10)], [7, 0]),
    "if exceed limit, use limit": (pod(10, 4000), [(4000, 30), (250, 10)], [100, 0]),
    "if exceed limit, use limit (with node which has no images present)": (
        pod(10, 4000), [(4000, 30), (250, 10), ()], [66, 0, 0]),
    "pod with multiple large images, node2 is preferred": (
        pod(300, 600, 900), [(600, 40, 900), (300, 600, 900), ()], [32, 36, 0]),
    "pod with multiple small images": (pod(30, 40), [(20, 30, 40), (4000, 30)], [1, 0]),
    "pod with ImageVolume": (pod(30, **volume(300)), [(300, 600, 900), (4000, 30)], [6, 0]),
    "same images as ImageVolume pod but as regular container images": (
        pod(30, 300), [(300, 600, 900), (4000, 30)], [6, 0]),
    "include InitContainers: two images spread on two nodes, prefer the larger image one": (
        pod(30, **init(300)), [(40, 300, 2000), (20, 30, 40)], [6, 0]),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "images", "points"), CASES.values(), ids=CASES)
def test_the_twin_scores_nodes_as_kube_scheduler(
    waiting: Json, images: list[tuple[int, ...]], points: list[int]
) -> None:
    nodes = [node(f"node{i}", *some) for i, some in enumerate(images)]
    assert list(twin.scores(waiting, nodes).values()) == points


def test_an_image_that_two_containers_run_counts_twice() -> None:
    """sumImageScores: over containers, not over names."""
    assert list(twin.scores(pod(300, 300), [node("a", 300)]).values()) == [29]
    assert list(twin.scores(pod(300), [node("a", 300)]).values()) == [28]


def test_another_name_of_an_image_is_as_good_and_a_name_told_twice_has_its_first_size() -> None:
    """addNodeImageStates."""
    here = objects.node("a")
    here["status"]["images"] = [
        {"names": ["x@sha256:0", "gcr.io/300:latest"], "sizeBytes": 300 << 20},
        {"names": ["gcr.io/300:latest"], "sizeBytes": 1},
        {"names": None},
    ]
    assert twin.scores(pod(300), [here]) == {"a": 28}
    digest = objects.pod(images=["x@sha256:0"])
    assert twin.scores(digest, [here]) == {"a": 28}
