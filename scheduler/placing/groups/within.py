"""What domains lose of groups that fit in their narrower domains, if pods are shared out there: many domains at once.

``choosing.share_out`` shares out pods in one domain. Here only the losses count, and there may be hundreds of domains.
"""

from __future__ import annotations

import numpy as np

from scheduler.placing.groups.choosing import count_lost, list_sizes
from scheduler.schema import columns as c

# More than any domain loses.
_NEVER = 1 << 50


def find_lost_within(places: c.Ints, parent: c.Ints, n_domains: int, wanted: int) -> c.Ints:
    """Find [domains] what each loses within if so many pods are shared out there; where they do not fit, more than ever.

    Args:
        places: [narrower domains] how many pods fit in each.
        parent: [narrower domains] the domain within which each lies.
        n_domains: how many domains there are.
        wanted: how many pods there are.
    """
    sizes = list_sizes(1, int(places.max(initial=0)))
    lost = np.full(n_domains, _NEVER, np.int64)
    takes = places >= wanted
    alone = count_lost(places[takes], np.full(int(takes.sum()), wanted), sizes)
    np.minimum.at(lost, parent[takes], alone)
    totals = np.bincount(parent, places, n_domains)
    shared = np.flatnonzero((lost == _NEVER) & (totals >= wanted))
    if shared.size:
        lost[shared] = _share_out_each(_list_within(places, parent, shared), wanted, sizes)
    return lost


def _list_within(places: c.Ints, parent: c.Ints, outer: c.Ints) -> c.Ints:
    """List [wider, narrower] the places of the domains within some wider domains, in order; 0 where one has fewer."""
    inside = np.flatnonzero(np.isin(parent, outer))
    inside = inside[np.argsort(parent[inside], kind="stable")]
    row = np.searchsorted(outer, parent[inside])
    counts = np.bincount(row)
    column = np.arange(inside.size) - (np.cumsum(counts) - counts)[row]
    found = np.zeros((outer.size, int(counts.max())), np.int64)
    found[row, column] = places[inside]
    return found


def _share_out_each(room: c.Ints, wanted: int, sizes: c.Ints) -> c.Ints:
    """Share out pods in each row, which has places for all in several domains; return [rows] what each loses."""
    lost, left = np.zeros(len(room), np.int64), np.full(len(room), wanted, np.int64)
    whole = count_lost(room.ravel(), room.ravel(), sizes).reshape(room.shape)
    going = np.arange(len(room))
    while going.size:
        takes = room.max(axis=1) >= left
        if takes.any():
            lost[going[takes]] += _find_least(room[takes], left[takes], sizes)
            going, room, whole, left = going[~takes], room[~takes], whole[~takes], left[~takes]
        if going.size:
            chosen = np.arange(going.size), _pick_whole(room, whole, left)
            lost[going] += whole[chosen]
            left = left - room[chosen]
            room[chosen] = 0
    return lost


def _find_least(room: c.Ints, left: c.Ints, sizes: c.Ints) -> c.Ints:
    """Find [rows] what the domain loses that takes all pods that are left and loses least."""
    row, column = np.nonzero(room >= left[:, None])
    each = count_lost(room[row, column], left[row], sizes)
    lost = np.full(len(room), _NEVER, np.int64)
    np.minimum.at(lost, row, each)
    return lost


def _pick_whole(room: c.Ints, whole: c.Ints, left: c.Ints) -> c.Ints:
    """Pick [rows] a domain that is filled whole, so that no more are needed in all than if the largest came first."""
    totals = np.cumsum(-np.sort(-room, axis=1), axis=1)
    # So many pods fill domains whole before the last one if the largest come first. Another one must leave no more.
    before = np.where(totals < left[:, None], totals, 0).max(axis=1)
    could = room >= (left - before)[:, None]
    for key in (whole / np.maximum(room, 1), -room):
        among = np.where(could, key, _NEVER)
        could = among == among.min(axis=1, keepdims=True)
    chosen: c.Ints = could.argmax(axis=1)
    return chosen
