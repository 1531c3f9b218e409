"""Container images by name: what a pod runs, and what a node has.

Source: kube-scheduler's imagelocality/image_locality.go.
"""

from __future__ import annotations

from scheduler.api import wire


def normalised(name: str) -> str:
    """The name with the tag that is meant where none is written."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def of_pod(spec: wire.PodSpec) -> tuple[str, ...]:
    """One name for each container, init container and image volume, sorted; one may be there twice."""
    written = [
        *(container.image for container in spec.init_containers or ()),
        *(container.image for container in spec.containers),
        *(volume.image.reference for volume in spec.volumes or () if volume.image),
    ]
    return tuple(sorted(map(normalised, written)))


def of_node(status: wire.NodeStatus) -> tuple[tuple[str, int], ...]:
    """(name, bytes) of every image on a node, by all names it goes by, sorted.

    A name that is given twice has the size of the first, as in kube-scheduler's cache. Of images of one
    name and several sizes kube-scheduler takes, for all nodes, the size of the node that it heard of first;
    here each node has its own, so that the answer does not hang on who came first.
    """
    sizes: dict[str, int] = {}
    for image in status.images or ():
        for name in image.names or ():
            sizes.setdefault(name, image.size_bytes)
    return tuple(sorted(sizes.items()))
