"""Segments: pods of one template in a row of ranks, each row in a domain of its own.

KAI's annotations cut the workers of a PyTorchJob and the pods of a LeaderWorkerSet; a LeaderWorkerSet may cut them itself, as
subgroups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import names, values
from scheduler.api.groups.definitions import Constraint, Part, Rule, Take
from scheduler.api.groups.readers import owners, reading
from scheduler.api.groups.readers.reading import Notes
from scheduler.errors import BadInput

NOTES = frozenset({names.KAI_SEGMENT_SIZE, names.KAI_SEGMENT_REQUIRED, names.KAI_SEGMENT_PREFERRED})
# A tenant writes how many pods there are, and how many of them are a segment.
_SEGMENTS_MAX = 1024


class Cut(NamedTuple):
    """How many pods are a segment, and where each segment goes."""

    size: int
    constraint: Constraint


def read_cut(template: Notes, owner: Notes) -> Cut | None:
    """Read how KAI's annotations cut the pods of a template; None if they do not, or do not say where segments go."""
    constraint = _read_constraint(template, owner)
    if names.KAI_SEGMENT_SIZE not in template.texts:
        return None
    field = template.name(names.KAI_SEGMENT_SIZE)
    size = reading.parse_count(template.texts[names.KAI_SEGMENT_SIZE], field)
    return Cut(size, constraint) if constraint else None


def _read_constraint(template: Notes, owner: Notes) -> Constraint | None:
    found = {}
    for key in (names.KAI_SEGMENT_REQUIRED, names.KAI_SEGMENT_PREFERRED):
        text = template.texts.get(key, "")
        found[key] = reading.read_name(text, template.name(key)) if text else ""
    required, preferred = found.values()
    if not (required or preferred):
        return None
    topology = template.texts.get(names.KAI_TOPOLOGY) or owner.texts.get(names.KAI_TOPOLOGY, "")
    return Constraint(
        Rule.KAI,
        topology=topology,
        required=required,
        preferred=(preferred,) if preferred else (),
    )


def cut_part(part: Part, cut: Cut) -> Part:
    """Cut a part into segments; those within its minimum must be placed at once."""
    rows = [(first, min(part.total, first + cut.size)) for first in _count_up(part.total, cut.size)]
    takes = [(Take(part.name, first, end),) for first, end in rows]
    segments = _make_segments(f"{part.name}-", takes, part.minimum, cut.constraint)
    return Part(part.name, len(segments), constraint=part.constraint, parts=segments)


def _count_up(total: int, size: int) -> range:
    if total > size * _SEGMENTS_MAX:
        text = f"{total} pods are cut into more than {_SEGMENTS_MAX} segments, the maximum"
        raise BadInput("spec", text)
    return range(0, total, size)


def _make_segments(
    prefix: str, takes: Sequence[tuple[Take, ...]], minimum: int, constraint: Constraint
) -> tuple[Part, ...]:
    """Make the segments; the minimum is taken from them in order."""
    segments = []
    for i, one in enumerate(takes):
        total = sum(take.end - take.first for take in one)
        least = min(minimum, total)
        minimum -= least
        segments.append(Part(f"{prefix}{i}", least, total, constraint, takes=one))
    return tuple(segments)


def read_pair_cut(
    spec: Mapping[str, Any], size: int, own: Notes, workers: Notes
) -> tuple[Cut, bool] | None:
    """Read how a LeaderWorkerSet cuts its pods, and whether the leader is in no segment; None if that has no effect.

    Args:
        spec: the template of the pair.
        size: how many pods a replica has.
        own: the annotations of the LeaderWorkerSet.
        workers: those of the template of the workers.
    """
    field = "spec.leaderWorkerTemplate.subGroupPolicy"
    policy = values.read_mapping(spec.get("subGroupPolicy"), field)
    pods = reading.read_optional_count(policy, "subGroupSize", field, 1)
    where, key = field, names.KAI_SEGMENT_SIZE
    for notes in (own, workers):
        if pods is None and key in notes.texts:
            where = notes.name(key)
            pods = reading.parse_count(notes.texts[key], where)
    constraint = _read_constraint(workers, own)
    if exclusive := own.texts.get(names.LWS_PARTS_EXCLUSIVE):
        at = own.name(names.LWS_PARTS_EXCLUSIVE)
        if constraint:
            raise BadInput(at, "may not stand beside KAI's segments; give those of one system")
        # The pods have terms that keep each subgroup alone in its domain.
        constraint = Constraint(Rule.KEEL, required=reading.read_name(exclusive, at, "a label"))
    if pods is None or constraint is None:
        return None
    if pods > size:
        raise BadInput(where, f"{pods} is more than the {size} pods of a replica")
    without_leader = policy.get("subGroupPolicyType") == "LeaderExcluded"
    if without_leader and (size - 1) % pods:
        raise BadInput(where, f"{pods} does not divide the {size - 1} workers of a replica")
    return Cut(pods, constraint), without_leader


def cut_pair(cut: Cut, size: int, minimum: int, *, without_leader: bool) -> tuple[Part, ...]:
    """Cut a leader with its workers into segments as LeaderWorkerSet numbers its subgroups."""
    # A leader that is one too many is in the first segment.
    shift = int(without_leader or ((size - 1) % cut.size == 0 and size % cut.size != 0))
    takes: list[tuple[Take, ...]] = []
    for first in _count_up(size - shift, cut.size):
        end = min(size, first + shift + cut.size)
        workers = Take(owners.WORKERS, max(1, first + shift), end)
        has_leader = first == 0 and not without_leader
        leader = (Take(owners.LEADER, 0, 1),) if has_leader else ()
        takes.append((*leader, workers) if workers.first < end else leader)
    if not without_leader:
        return _make_segments("segment-", takes, minimum, cut.constraint)
    leader_part = Part(owners.LEADER, min(1, minimum), 1)
    rest = _make_segments("segment-", takes, minimum - leader_part.minimum, cut.constraint)
    return leader_part, *rest
