"""Of which chain of slices a workload or a pod is: a job that changes its size while it runs has one workload after another."""

from __future__ import annotations

from scheduler.api import names, wire


def find_chain(meta: wire.Meta) -> str:
    """Find to which chain of slices a workload belongs."""
    texts = meta.annotations or {}
    if texts.get(names.KUEUE_ELASTIC) != "true":
        return ""
    return f"{meta.namespace}/{write_chain(meta, texts.get(names.KUEUE_CHAIN) or meta.name)}"


def write_chain(meta: wire.Meta, first: str) -> str:
    """Write of which chain of slices a workload or a pod is, with the uid of the job: nobody else is of its chain."""
    owner = next((one.uid for one in meta.owner_references or () if one.controller), "")
    return f"{first}/{owner}"


def find_replaced(meta: wire.Meta) -> str:
    """Find the slice that a workload replaces; one of another namespace is never meant."""
    key = (meta.annotations or {}).get(names.KUEUE_REPLACES, "")
    is_meant = find_chain(meta) and key.startswith(f"{meta.namespace}/")
    return key if is_meant else ""
