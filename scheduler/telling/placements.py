"""The text about a placed pod: its node, its cards, and the mode, policy or annotation that decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.api.cards import CardUse, list_uses
from scheduler.api.placement import Placement, read_annotations
from scheduler.kernels import parts
from scheduler.shapes.boards import Shape
from scheduler.shapes.policies import Resolved
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling.sayings import NOTE_MAX

# Bytes of the note that are kept for the words between its parts, and for the number of cards that are left out.
_REST = 32
_DEFAULT = Placement()


def write_assigned(pod: PodRecord, node: str) -> str:
    """Write kube-scheduler's text about a placed pod."""
    return f"Successfully assigned {pod.key} to {node}"


def write_note(cluster: Cluster, pod: PodRecord, how: str) -> str:
    """Write kube-scheduler's text, then the cards and ``how`` the pod was placed; cards that exceed a note are left out."""
    text = write_assigned(pod, pod.node)
    left = NOTE_MAX - len(text.encode()) - len(how.encode()) - _REST
    if cards := _write_cards(cluster, pod, left):
        text += f" with {cards}"
    return f"{text}; {how}" if how else text


def say_how(pod: PodRecord, resolved: Resolved) -> str:
    """Say which mode places a pod and who set the mode; empty for a pod without GPUs and without any setting."""
    template, placement = pod.template, resolved.placement
    has_own = bool(read_annotations(dict(template.steering)))
    if not (template.gpu or has_own or resolved.policy or placement != _DEFAULT):
        return ""
    words = [
        f"node policy {placement.node_policy}"
        if placement.node_policy
        else f"mode {placement.mode}"
    ]
    if placement.objective and not placement.node_policy:
        words.append(f"objective {placement.objective}")
    if template.gpu and placement.gpu_policy:
        words.append(_write_gpu_policy(placement.gpu_policy))
    wishes = ["the pod's annotations"] if has_own else []
    if resolved.policy:
        wishes.append(f"policy {resolved.policy}")
    return f"{', '.join(words)}, by {' and '.join(wishes) or f'profile {pod.profile}'}"


def say_card_order(shape: Shape) -> str:
    """Say what orders the cards of a node for pods of a shape: the mode or the GPU policy."""
    asked, ask = shape.asked, shape.ask
    if parts.is_aware(ask) and not ask.rules.walk:
        return f"mode {asked.placement.mode}"
    policy = asked.placement.gpu_policy
    told = _write_gpu_policy(policy) if policy else "GPU policy binpack, because none is set"
    return f"{told}, all on one NUMA node" if ask.rules.numa_bind else told


def _write_gpu_policy(policy: str) -> str:
    return f"GPU policy {','.join(dict.fromkeys(policy.split(',')))}"


def _write_cards(cluster: Cluster, pod: PodRecord, most: int) -> str:
    """Write the pod's cards by index in at most ``most`` bytes; for devices that are only counted, their number."""
    uses = list_uses(pod.claim)
    if not uses:
        amounts = dict(pod.template.requests.amounts)
        asked = amounts.get(pod.template.family, 0) if pod.template.gpu else 0
        return f"{asked} {pod.template.family}" if asked else ""
    row = cluster.nodes.find_row(pod.node)
    there = cluster.registers.list_all_cards(pod.uid, row)
    told: list[str] = []
    for text in _write_each_card(cluster, uses, there):
        most -= len(text.encode()) + 2
        if most < 0:
            break
        told.append(text)
    rest = len(uses) - len(told)
    return f"{'card' if len(uses) == 1 else 'cards'} {', '.join(told)}" + (
        f" and {rest} more" if rest else ""
    )


def _write_each_card(
    cluster: Cluster, uses: list[CardUse], there: Mapping[str, int]
) -> Iterator[str]:
    for use in uses:
        d = there.get(use.uuid, -1)
        index = f"{cluster.cards.columns.position[d]} " if d >= 0 else ""
        # Cards whose model is told have cores of their own number.
        unit = "cores" if use.model else "% of its cores"
        cores = f", {use.cores} {unit}" if use.cores else ""
        yield f"{index}({use.uuid}, {use.mem_mib} MiB{cores})"
