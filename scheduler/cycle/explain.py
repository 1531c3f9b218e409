"""Reasons to sentences, in kube-scheduler's phrasing, which autoscalers and people parse."""

from __future__ import annotations

from scheduler.api.door.decisions import Diagnosis, Hold


def sentence(hold: Hold) -> str:
    """Why a pod is pending."""
    if hold.problem:
        return str(hold.problem)
    if hold.diagnosis is None or hold.diagnosis.n_nodes == 0:
        return "no nodes available to schedule pods"
    return fit_error(hold.diagnosis)


def fit_error(diagnosis: Diagnosis) -> str:
    """A FitError: ``0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)``.

    The parts are sorted as text, as kube-scheduler sorts them.
    """
    parts = sorted(f"{n} {reason}" for reason, n in diagnosis.reasons)
    return f"0/{diagnosis.n_nodes} nodes are available: {', '.join(parts)}."
