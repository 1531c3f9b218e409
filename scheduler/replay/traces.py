"""Reads a trace: a folder in the format of openb, or one with ``nodes.csv`` and ``pods.csv``.

Every file may be ``.csv``, ``.csv.gz`` or ``.csv.xz``.

openb (``bench/data/openb/README.md``): nodes from ``openb_node_list_gpu_node``, which holds only
nodes with GPUs; pods from ``openb_pod_list_<variant>``. The recorded phases are not used.

Our own format, columns in any order; an empty cell of a column that may be left out counts as left out:

    nodes.csv  name    unique
               cpu     cores: 96, 0.5 or 500m
               memory  with its unit: 384Gi, 512Mi
               resource:NAME  may be left out: whole number of the extended resource NAME, such as
                       resource:example.com/iops; there may be several such columns
               gpus    may be left out: whole number, may be 0
               model   may be left out: model of the GPUs
               mig     may be left out: by which model's MIG profiles the GPUs are cut (devices/mig_models.py)
    pods.csv   name, cpu, memory, resource:NAME  as above; memory may be 0
               app           may be left out: value of the pod's label app
               max_per_node  may be left out: at most so many pods of its app on one node; the same in
                             all lines of an app; else, unless strict, the smallest holds
               arrival       may be left out: seconds from the start of the trace; empty: 0
               departure     may be left out: likewise, after the arrival; empty: it never leaves; at or before the
                             arrival, unless strict: it stays for 1/1024 of a second
               gpus          may be left out: GPUs on one node, may be 0
               gpu_share     may be left out: share of the GPU, 0.001..1, below 1 only with 1 GPU; empty: 1
               models        may be left out: GPU models it may run on joined with |; empty: any
               gpu_memory    may be left out: on each GPU, with its unit; empty: as much as its share. In a trace with
                             GPUs that are cut by MIG, a pod that has it requests nothing else of the GPU, and its share
                             only says what it counts for
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from scheduler.documents import foreign
from scheduler.errors import BadInput
from scheduler.replay import demand
from scheduler.replay.experiment import Trace, TraceNode, TracePod
from scheduler.replay.reading import openb, own, tables

DEFAULT = "default"
_OPENB_NODES = "openb_node_list_gpu_node"
_OPENB_PODS = "openb_pod_list_"

_FILES = f"nodes.csv and pods.csv, or {_OPENB_NODES}.csv"

Named = TypeVar("Named", TraceNode, TracePod)


def read_trace(folder: Path, variant: str = DEFAULT, *, strict: bool = False) -> Trace:
    """Read the trace in ``folder``.

    Args:
        folder: as described above.
        variant: which of openb's pod lists, e.g. ``gpuspec33``.
        strict: contradictory lines are refused; else they are read with the smallest value that makes sense, and
            ``Trace.readings`` says so.

    Raises:
        BadInput: a file is wrong; the error names file, line and column, and says what is allowed.
    """
    if not folder.is_dir():
        raise BadInput(str(folder), _describe_no_folder(folder))
    openb_nodes = tables.find_file(folder, _OPENB_NODES)
    if openb_nodes is not None:
        return _read_openb(folder, openb_nodes, variant, strict=strict)
    nodes, pods = tables.find_file(folder, "nodes"), tables.find_file(folder, "pods")
    if nodes is None or pods is None:
        raise BadInput(str(folder), f"is not a trace: it must contain {_FILES}")
    if variant != DEFAULT:
        raise BadInput(
            "variant", f'"{variant}": only traces of openb have variants; leave out --variant'
        )
    is_recorded = own.ARRIVAL in tables.read_header(pods)
    taken, readings = own.read_pods(pods, strict=strict)
    found = _check_trace(folder, own.read_nodes(nodes), taken, is_recorded=is_recorded)
    return replace(found, readings=readings)


def _describe_no_folder(path: Path) -> str:
    """Describe what was given instead of the folder of a trace."""
    if not path.exists():
        return "there is no such folder"
    found = foreign.recognize_file(path)
    return f"{found.what if found else 'is a file'}: a trace is a folder with {_FILES}"


def list_variants(folder: Path) -> list[str]:
    """List the variants of an openb folder, sorted."""
    names = (path.name.partition(".") for path in folder.glob(f"{_OPENB_PODS}*.csv*"))
    return sorted({stem.removeprefix(_OPENB_PODS) for stem, _, _ in names})


def _read_openb(folder: Path, nodes: Path, variant: str, *, strict: bool) -> Trace:
    pods = (
        tables.find_file(folder, _OPENB_PODS + variant)
        if variant in list_variants(folder)
        else None
    )
    if pods is None:
        known = ", ".join(list_variants(folder)) or "none"
        raise BadInput("variant", f'"{variant}" is not in {folder}; allowed are {known}')
    is_recorded = openb.ARRIVAL in tables.read_header(pods)
    taken, readings = openb.read_pods(pods, strict=strict)
    found = _check_trace(
        folder,
        map(openb.read_node, tables.read_rows(nodes, openb.NODE_COLUMNS, ())),
        taken,
        is_recorded=is_recorded,
    )
    return replace(found, readings=readings)


def _check_trace(
    folder: Path, nodes: Iterable[TraceNode], pods: Iterable[TracePod], *, is_recorded: bool
) -> Trace:
    there, taken = _check_unique("node", nodes), _check_unique("pod", pods)
    if any(node.mig for node in there):
        taken = tuple(replace(pod, by_memory=pod.gpu_mib > 0) for pod in taken)
    trace = Trace(folder.resolve().name, there, taken, is_recorded)
    asked = demand.read_demand(trace)
    if not asked.amounts.any():
        raise BadInput(str(folder), "no pod requests anything; at least one must")
    for name, amounts, there in zip(asked.names, asked.amounts, asked.capacity, strict=True):
        if amounts.any() and not there.any():
            first = trace.pods[int(amounts.argmax())].name
            raise BadInput(str(folder), f"pod {first} requests {name}, but no node has any")
    return trace


def _check_unique(kind: str, found: Iterable[Named]) -> tuple[Named, ...]:
    by_name: dict[str, Named] = {}
    for one in found:
        if one.name in by_name:
            raise BadInput(f"{kind} {one.name}", "appears more than once; names must be unique")
        by_name[one.name] = one
    return tuple(by_name.values())
