"""Read a trace: a folder in the format of openb, or one with ``nodes.csv`` and ``pods.csv``.

Every file may be ``.csv``, ``.csv.gz`` or ``.csv.xz``.

openb (``bench/data/openb/README.md``): nodes from ``openb_node_list_gpu_node``, which holds only
nodes with GPUs; pods from ``openb_pod_list_<variant>``. Times and phases in it are not used.

Our own format, columns in any order:

    nodes.csv  name    unique
               cpu     cores: 96, 0.5 or 500m
               memory  with its unit: 384Gi, 512Mi
               gpus    whole number, may be 0
               model   model of the GPUs; may be empty or left out
    pods.csv   name, cpu, memory  as above; memory may be 0
               gpus        GPUs on one node, may be 0
               gpu_share   share of the GPU, 0.001..1, below 1 only with 1 GPU; empty or left out: 1
               models      GPU models it may run on joined with |; empty or left out: any
               gpu_memory  on each GPU, with its unit; empty or left out: as much as its share
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from scheduler.errors import BadInput
from scheduler.replay import tables
from scheduler.replay.experiment import WHOLE, Trace, TraceNode, TracePod
from scheduler.replay.tables import Row

GPUS_MAX = 64  # of one node
DEFAULT = "default"
_OPENB_NODES = "openb_node_list_gpu_node"
_OPENB_PODS = "openb_pod_list_"
_OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_OPENB_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
# The multigpu lists have only the columns above.
_OPENB_POD_EXTRAS = (
    "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
_NODE_COLUMNS = ("name", "cpu", "memory", "gpus")
_POD_EXTRAS = ("gpu_share", "models", "gpu_memory")

Named = TypeVar("Named", TraceNode, TracePod)


def read(folder: Path, variant: str = DEFAULT) -> Trace:
    """The trace in ``folder``.

    Args:
        folder: as described above.
        variant: which of openb's pod lists, e.g. ``gpuspec33``.

    Raises:
        BadInput: names file, line and column, and says what is allowed.
    """
    openb_nodes = tables.find(folder, _OPENB_NODES)
    if openb_nodes is not None:
        return _openb(folder, openb_nodes, variant)
    nodes, pods = tables.find(folder, "nodes"), tables.find(folder, "pods")
    if nodes is None or pods is None:
        raise BadInput(
            str(folder),
            f"is no trace: neither {_OPENB_NODES}.csv nor nodes.csv and pods.csv are in it",
        )
    if variant != DEFAULT:
        raise BadInput("variant", f'"{variant}": a trace of nodes.csv and pods.csv has no variants')
    return _checked(
        folder,
        (_node(row) for row in tables.rows(nodes, _NODE_COLUMNS, ("model",))),
        (_pod(row) for row in tables.rows(pods, _NODE_COLUMNS, _POD_EXTRAS)),
    )


def variants(folder: Path) -> list[str]:
    """The variants of an openb folder, sorted."""
    names = (path.name.partition(".") for path in folder.glob(f"{_OPENB_PODS}*.csv*"))
    return sorted({stem.removeprefix(_OPENB_PODS) for stem, _, _ in names})


def _openb(folder: Path, nodes: Path, variant: str) -> Trace:
    pods = tables.find(folder, _OPENB_PODS + variant) if variant in variants(folder) else None
    if pods is None:
        known = ", ".join(variants(folder)) or "none"
        raise BadInput("variant", f'"{variant}" is not in {folder}; there: {known}')
    return _checked(
        folder,
        (_openb_node(row) for row in tables.rows(nodes, _OPENB_NODE_COLUMNS, ())),
        (_openb_pod(row) for row in tables.rows(pods, _OPENB_POD_COLUMNS, _OPENB_POD_EXTRAS)),
    )


def _checked(folder: Path, nodes: Iterable[TraceNode], pods: Iterable[TracePod]) -> Trace:
    trace = Trace(folder.resolve().name, _unique("node", nodes), _unique("pod", pods))
    if not trace.capacity:
        raise BadInput(str(folder), "no node has a GPU: at least one is needed")
    if not any(pod.gpus for pod in trace.pods):
        raise BadInput(str(folder), "no pod asks for a GPU: at least one must")
    return trace


def _unique(kind: str, found: Iterable[Named]) -> tuple[Named, ...]:
    by_name: dict[str, Named] = {}
    for one in found:
        if one.name in by_name:
            raise BadInput(f"{kind} {one.name}", "is there more than once; names must be unique")
        by_name[one.name] = one
    return tuple(by_name.values())


def _openb_node(row: Row) -> TraceNode:
    return TraceNode(
        row.text("sn"),
        row.integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.integer("memory_mib", 0, tables.AMOUNT_MAX),
        row.integer("gpu", 1, GPUS_MAX),
        row.cells["model"],
    )


def _openb_pod(row: Row) -> TracePod:
    gpus = row.integer("num_gpu", 0, GPUS_MAX)
    milli = row.integer("gpu_milli", 1 if gpus else 0, WHOLE if gpus else 0)
    _check_share(row, gpus, milli, "gpu_milli")
    return TracePod(
        row.text("name"),
        row.integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.integer("memory_mib", 0, tables.AMOUNT_MAX),
        gpus,
        milli,
        row.models("gpu_spec"),
    )


def _node(row: Row) -> TraceNode:
    return TraceNode(
        row.text("name"),
        row.cores("cpu"),
        row.mebibytes("memory"),
        row.integer("gpus", 0, GPUS_MAX),
        row.cells.get("model", ""),
    )


def _pod(row: Row) -> TracePod:
    gpus = row.integer("gpus", 0, GPUS_MAX)
    milli = row.share("gpu_share") if gpus else 0
    memory = row.mebibytes("gpu_memory")
    _check_share(row, gpus, milli, "gpu_share")
    for column in ("gpu_share", "gpu_memory", "models"):
        if not gpus and row.cells.get(column):
            raise row.bad(column, f'"{row.cells[column]}": must be empty when gpus is 0')
    return TracePod(
        row.text("name"),
        row.cores("cpu"),
        row.mebibytes("memory"),
        gpus,
        milli,
        row.models("models"),
        memory,
    )


def _check_share(row: Row, gpus: int, milli: int, column: str) -> None:
    if gpus > 1 and milli < WHOLE:
        raise row.bad(
            column, f'"{row.cells[column]}": a share is for 1 GPU, and {gpus} are asked for'
        )
