"""ImageLocality of kube-scheduler 1.37.1, one node and one image at a time, from raw objects.

Source: imagelocality/image_locality.go. An image has the size that its node tells; kube-scheduler's
cache has for all nodes that of the node it heard of first.
"""

from typing import Any

Json = dict[str, Any]
MIB = 1024 * 1024
LEAST, MOST_OF_ONE = 23 * MIB, 1000 * MIB


def scores(pod: Json, nodes: list[Json]) -> dict[str, int]:
    """0..100 by node, not normalised further: the more bytes are there already, the more."""
    wanted = images(pod)
    return {
        node["metadata"]["name"]: points(raw(wanted, node, nodes), len(wanted)) for node in nodes
    }


def raw(wanted: list[str], node: Json, nodes: list[Json]) -> int:
    """Bytes that are there; of an image that few nodes have only the part that have it."""
    total = 0
    for image in wanted:
        size = sizes(node).get(image)
        if size is not None:
            having = sum(1 for other in nodes if image in sizes(other))
            total += int(float(size) * (having / len(nodes)))
    return total


def points(total: int, n_images: int) -> int:
    most = MOST_OF_ONE * n_images
    clamped = LEAST if total < LEAST else min(total, most)
    return 100 * (clamped - LEAST) // (most - LEAST)


def images(pod: Json) -> list[str]:
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    volumes = [one["image"] for one in spec.get("volumes") or () if one.get("image") is not None]
    written = [one.get("image", "") for one in containers]
    written += [one.get("reference", "") for one in volumes]
    return [in_full(name) for name in written]


def in_full(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def sizes(node: Json) -> dict[str, int]:
    found: dict[str, int] = {}
    for image in node["status"].get("images") or ():
        for name in image.get("names") or ():
            found.setdefault(name, image.get("sizeBytes", 0))
    return found
