"""ImageLocality: prefers nodes that already have the pod's images, by bytes; an image that few nodes have counts less.

Source: kube-scheduler's imagelocality/image_locality.go.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins.contract import Rule, Score
from scheduler.schema import columns as c
from scheduler.state.nodes import NodeTable

_MIB = 1 << 20
# Images of fewer bytes in all give 0 points; so many bytes for each image give 100 points.
_LEAST, _MOST_OF_ONE = 23 * _MIB, 1000 * _MIB

Images = tuple[str, ...]


def _read_images(template: PodTemplate) -> Images | None:
    return template.images or None


def _score_nodes(images: Images, nodes: NodeTable, rows: c.Ints) -> c.Ints:
    """Score nodes 0..100 by the bytes of the pod's images that are there.

    An image that two containers run counts twice. If only a share of the nodes has an image, only this share of its bytes
    counts, so that pods of a new image do not crowd on the first node that has it.
    """
    total = np.zeros(nodes.capacity, np.int64)
    for name, times in Counter(images).items():
        having, sizes = nodes.images.find_nodes(name)
        if having.size:
            share = having.size / len(nodes.rows)
            total[having] += times * (sizes * share).astype(np.int64)
    most = _MOST_OF_ONE * len(images)
    points: c.Ints = 100 * (np.clip(total[rows], _LEAST, most) - _LEAST) // (most - _LEAST)
    return points


def _read_token(nodes: NodeTable) -> tuple[int, int]:
    return nodes.images.version, len(nodes.rows)


RULE = Rule(
    name="ImageLocality",
    score=Score(wants=_read_images, raw=_score_nodes, how=c.AS_IS, weight=1, reads=_read_token),
)
