"""How a pod is placed, as one value: the mode, its weights, the node policy and the GPU policy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scheduler.api import kube_plugins, names, values
from scheduler.api.kube_plugins import KubePlugins
from scheduler.errors import BadInput


class Mode(StrEnum):
    """Scoring modes, by the names that users write; ``random`` is for comparisons in the simulator only."""

    KEEL = "keel"
    FGD = "fgd"
    BEST_FIT = "best-fit"
    FIRST_FIT = "first-fit"
    DOT_PRODUCT = "dot-product"
    GPU_PACKING = "gpu-packing"
    GPU_CLUSTERING = "gpu-clustering"
    RANDOM = "random"
    LEAST_ALLOCATED = "least-allocated"
    MOST_ALLOCATED = "most-allocated"
    BALANCED_ALLOCATION = "balanced-allocation"
    REQUESTED_TO_CAPACITY_RATIO = "requested-to-capacity-ratio"
    LAMBDA_G = "lambda-g"
    LAMBDA_G_V3 = "lambda-g-v3"
    KUBE_SCHEDULER = "kube-scheduler"


MODES = tuple(mode for mode in Mode if mode != Mode.RANDOM)
# The six dimensions of every mode, in the order of all arrays.
DIMENSIONS = ("cpu", "memory", "gpuCompute", "gpuMemory", "iops", "network")
# By what keel chooses among placements that lose nearly nothing.
SPREAD, PACK = OBJECTIVES = ("spread", "pack")
NODE_POLICIES = ("binpack", "spread")
GPU_POLICY_WORDS = ("binpack", "spread", "topology-aware", "mutex", "numa")
WEIGHT_MAX = 100
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_RESOURCE_LENGTH_MAX = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The settings that follow from a pod's annotations, its policy and the configuration.

    Attributes:
        mode: the formula by which nodes are scored.
        objective: keel's second objective, among placements that lose (nearly) nothing: ``spread`` prefers
            emptier nodes, ``pack`` fuller ones, so that whole nodes stay free for scale-down. Empty: pods
            without devices spread, pods with devices keep the fixed order.
        weights: one per dimension, 0..100.
        iops_resource, network_resource: extended resources that the last two dimensions read.
        curve: (utilization 0..100, score 0..10) points of requested-to-capacity-ratio.
        node_policy: ``binpack`` or ``spread`` (HAMi's node score replaces the mode's term), or empty.
        gpu_policy: HAMi's word, or several with commas, for the order of cards; empty leaves it to the
            mode, which is binpack for modes that do not look at cards.
        device_weights: HAMi's slot, core and memory weights of the card score.
        mode_weight: weight of the mode's term beside taints 3 and node affinity 2, 1..100, as large as
            kube-scheduler's own weights may be; only a profile sets it.
        plugins: which of kube-scheduler's rules are on, and their weights; None: kube-scheduler's defaults.
            Only a profile sets it.
    """

    mode: Mode = Mode.KEEL
    objective: str = ""
    weights: tuple[int, int, int, int, int, int] = (1, 1, 1, 1, 1, 1)
    iops_resource: str = names.IOPS
    network_resource: str = names.NETWORK
    curve: tuple[tuple[int, int], ...] = ((0, 0), (100, 10))
    node_policy: str = ""
    gpu_policy: str = ""
    device_weights: tuple[int, int, int] = (1, 1, 1)
    mode_weight: int = 5
    plugins: KubePlugins | None = None

    @property
    def kube(self) -> KubePlugins:
        """The settings of kube-scheduler's rules."""
        return self.plugins or kube_plugins.DEFAULT

    @property
    def is_kube(self) -> bool:
        """Whether nodes are chosen by kube-scheduler's own sum."""
        return self.mode == Mode.KUBE_SCHEDULER and not self.node_policy


def read_annotations(given: Mapping[str, str]) -> dict[str, Any]:
    """Read the fields of Placement that a pod's annotations set.

    Raises:
        BadInput: the value of an annotation is not allowed.
    """
    parsers = {
        names.MODE: ("mode", read_mode),
        names.OBJECTIVE: ("objective", read_objective),
        names.HAMI_NODE_POLICY: ("node_policy", read_node_policy),
        names.HAMI_GPU_POLICY: ("gpu_policy", read_gpu_policy),
        names.HAMI_WEIGHTS: ("device_weights", read_device_weights),
    }
    changes = {
        attribute: parse(given[key], f"metadata.annotations[{key}]")
        for key, (attribute, parse) in parsers.items()
        if key in given
    }
    _settle_objective(changes, f"metadata.annotations[{names.OBJECTIVE}]")
    if "mode" in changes:
        # A node policy replaces the mode: one from a weaker level must not replace the mode of the pod.
        changes.setdefault("node_policy", "")
    return changes


def read_mode(text: str, field: str) -> Mode:
    """Read a mode.

    Raises:
        BadInput: there is no such mode.
    """
    if text not in MODES:
        raise BadInput(field, f'"{text}" is not a mode: {_join_allowed(MODES)}')
    return Mode(text)


def read_objective(text: str, field: str) -> str:
    """Read an objective of keel.

    Raises:
        BadInput: there is no such objective.
    """
    if text not in OBJECTIVES:
        raise BadInput(field, f'"{text}" is not an objective: {_join_allowed(OBJECTIVES)}')
    return text


def read_node_policy(text: str, field: str) -> str:
    """Read a node policy.

    Raises:
        BadInput: the word is unknown; HAMi would read it as binpack, but a typing error must not count as that.
    """
    if text not in NODE_POLICIES:
        raise BadInput(field, f'"{text}" is not a node policy: {_join_allowed(NODE_POLICIES)}')
    return text


def read_gpu_policy(text: str, field: str) -> str:
    """Read a GPU policy: one of HAMi's words, or several with commas between them.

    Raises:
        BadInput: a word is unknown; HAMi would read it as spread, but a typing error must not count as that.
    """
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in GPU_POLICY_WORDS:
            raise BadInput(
                field,
                f'"{word}" is not a GPU policy: {_join_allowed(GPU_POLICY_WORDS)}, or a comma list',
            )
    return ",".join(words)


def read_device_weights(text: str, field: str) -> tuple[int, int, int]:
    """Read ``slot=1,core=1,memory=3`` as three integers; blanks around words and figures are ignored.

    Raises:
        BadInput: the text does not have each of the three keys once, with integers of 0 or more, one of them over 0.
    """
    parts = [part.partition("=") for part in text.split(",")]
    pairs = {key.strip(): figure.strip() for key, _, figure in parts}
    figures = [pairs.get(key, "") for key in ("slot", "core", "memory")]
    if (
        len(pairs) != len(figures)
        or len(parts) != len(figures)
        or not all(f.isascii() and f.isdigit() and len(f) <= 6 for f in figures)
        or not any(int(f) for f in figures)
    ):
        raise BadInput(
            field,
            f'"{text}" must give slot, core and memory once each, as integers of 0 or more '
            "with one above 0, e.g. slot=1,core=1,memory=3",
        )
    slot, core, memory = (int(f) for f in figures)
    return slot, core, memory


def read_fields(raw: Any, field: str) -> dict[str, Any]:
    """Read the fields of Placement that ``scoring``, ``nodePolicy`` and ``gpuPolicy`` under ``field`` set.

    Raises:
        BadInput: an unknown field, or a value that is not allowed.
    """
    given = values.read_mapping(raw, field)
    values.refuse_unknown(given, field, ("scoring", "nodePolicy", "gpuPolicy"))
    where = f"{field}.scoring"
    scoring = values.read_mapping(given.get("scoring"), where)
    values.refuse_unknown(
        scoring, where, ("mode", "objective", "weights", "iopsResource", "networkResource", "curve")
    )
    changes = _read_mode_and_objective(scoring, where)
    if "weights" in scoring:
        weights = values.read_mapping(scoring["weights"], f"{where}.weights")
        changes["weights"] = _read_weights(weights, f"{where}.weights")
    for key, attribute in (
        ("iopsResource", "iops_resource"),
        ("networkResource", "network_resource"),
    ):
        if key in scoring:
            changes[attribute] = _read_resource(scoring[key], f"{where}.{key}")
    if len({changes.get("iops_resource", 0), changes.get("network_resource", 1)}) == 1:
        raise BadInput(f"{where}.networkResource", "must not be the iopsResource")
    if "curve" in scoring:
        if changes.get("mode") != Mode.REQUESTED_TO_CAPACITY_RATIO:
            raise BadInput(f"{where}.curve", f"belongs to mode {Mode.REQUESTED_TO_CAPACITY_RATIO}")
        changes["curve"] = read_curve(scoring["curve"], f"{where}.curve")
    if "nodePolicy" in given:
        changes["node_policy"] = read_node_policy(str(given["nodePolicy"]), f"{field}.nodePolicy")
    if "gpuPolicy" in given:
        changes["gpu_policy"] = read_gpu_policy(str(given["gpuPolicy"]), f"{field}.gpuPolicy")
    return changes


def describe_ineffective(changes: Mapping[str, Any], configured: Mapping[str, str]) -> str:
    """Describe which of the fields that a BalancePolicy sets have no effect; empty for none.

    A node policy takes the place of scoring; cards are then chosen as a GPU policy says, or packed.

    Args:
        changes: the fields of Placement that the policy sets.
        configured: node policies of the configuration, by scheduler name, empty for none.
    """
    scoring = [
        word
        for field, word in (
            ("mode", f"mode {changes.get('mode')}"),
            ("objective", f"objective {changes.get('objective')}"),
            ("weights", "weights"),
            ("curve", "curve"),
            ("iops_resource", "iopsResource"),
            ("network_resource", "networkResource"),
        )
        if changes.get(field)
    ]
    if not scoring:
        return ""
    if not changes.get("node_policy"):
        others = [f"{name} ({policy})" for name, policy in configured.items() if policy]
        return (
            f"for pods of {', '.join(others)} the configuration's nodePolicy scores the nodes, so this has no effect: "
            f"{', '.join(scoring)}"
            if others
            else ""
        )
    cards = changes.get("gpu_policy")
    by = f"by gpuPolicy {cards}" if cards else "by binpack, because gpuPolicy is not set"
    return (
        f"nodePolicy {changes['node_policy']} scores the nodes, so this has no effect: {', '.join(scoring)}; "
        f"cards are chosen {by}"
    )


def _read_mode_and_objective(scoring: Mapping[str, Any], where: str) -> dict[str, Any]:
    changes: dict[str, Any] = {
        key: read(str(scoring[key]), f"{where}.{key}")
        for key, read in (("mode", read_mode), ("objective", read_objective))
        if key in scoring
    }
    _settle_objective(changes, f"{where}.objective")
    return changes


def _settle_objective(changes: dict[str, Any], field: str) -> None:
    """Settle mode and objective of one level: a level that sets one of them sets the other too, against weaker levels.

    Raises:
        BadInput: the objective, which is in ``field``, does not belong to the mode.
    """
    if "objective" in changes:
        if changes.setdefault("mode", Mode.KEEL) != Mode.KEEL:
            raise BadInput(
                field,
                f"is allowed with mode {Mode.KEEL} or without a mode, not with mode {changes['mode']}",
            )
    elif "mode" in changes:
        changes["objective"] = ""


def _read_resource(raw: Any, field: str) -> str:
    if not isinstance(raw, str) or len(raw) > _RESOURCE_LENGTH_MAX or not _RESOURCE.fullmatch(raw):
        raise BadInput(field, f"{raw!r} is not the name of an extended resource, domain/name")
    return raw


def _read_weights(raw: Mapping[str, Any], field: str) -> tuple[int, ...]:
    values.refuse_unknown(raw, field, DIMENSIONS)
    weights = tuple(
        values.read_integer(raw.get(key, 0), f"{field}.{key}", 0, WEIGHT_MAX) for key in DIMENSIONS
    )
    if not any(weights):
        raise BadInput(field, "at least one weight must be above 0")
    return weights


def read_curve(raw: Any, field: str) -> tuple[tuple[int, int], ...]:
    """Read points of a score by utilization, as ``Placement.curve``.

    Raises:
        BadInput: this is no such curve; the error names the field.
    """
    if not isinstance(raw, list) or not raw:
        raise BadInput(field, "must be a list of at least one point {utilization, score}")
    points = []
    for i, item in enumerate(raw):
        point = values.read_mapping(item, f"{field}[{i}]")
        points.append(
            (
                values.read_integer(point.get("utilization"), f"{field}[{i}].utilization", 0, 100),
                values.read_integer(point.get("score"), f"{field}[{i}].score", 0, 10),
            )
        )
    if any(a[0] >= b[0] for a, b in itertools.pairwise(points)):
        raise BadInput(field, "utilization must rise strictly from point to point")
    return tuple(points)


def _join_allowed(words: tuple[str, ...]) -> str:
    return "allowed are " + ", ".join(words)
