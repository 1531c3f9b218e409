"""Container images by name: what a pod runs, and what a node has.

Source: kube-scheduler's imagelocality/image_locality.go.
"""

from __future__ import annotations

from scheduler.api import wire


def normalise(name: str) -> str:
    """Return the name with the tag that is meant if none is written."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def list_names(spec: wire.PodSpec) -> tuple[str, ...]:
    """List a name for each container, init container and image volume, sorted; a name may come twice."""
    written = [
        *(container.image for container in spec.init_containers or ()),
        *(container.image for container in spec.containers),
        *(volume.image.reference for volume in spec.volumes or () if volume.image),
    ]
    return tuple(sorted(map(normalise, written)))


def list_images(status: wire.NodeStatus) -> tuple[tuple[str, int], ...]:
    """List (name, bytes) of every image on a node, under all its names, sorted.

    A name that comes twice has the size of the first, as in kube-scheduler's cache. If nodes have different sizes
    under one name, kube-scheduler uses for all nodes the size on the node that it saw first; here each node has its
    own size, so that the answer does not depend on the order of events.
    """
    sizes: dict[str, int] = {}
    for image in status.images or ():
        for name in image.names or ():
            sizes.setdefault(name, image.size_bytes)
    return tuple(sorted(sizes.items()))
