"""Sizes of pods by the GPUs that they request."""

from __future__ import annotations

import numpy as np

from scheduler.replay.experiment import WHOLE, Ints, Trace

# Pods of 3 GPUs count as those of 4, pods of 5 and more as those of 8.
CLASSES = ("cpu", "share", "1", "2", "4", "8")


def classify_pods(trace: Trace) -> Ints:
    """Find [pods] the index in ``CLASSES`` of what each pod requests."""
    bounds = [0, 1, 2, 4]  # a pod above the i-th bound is in a later class than i
    gpus = np.array([pod.gpus for pod in trace.pods])
    is_whole = np.array([pod.gpu_milli == WHOLE for pod in trace.pods])
    found = np.searchsorted(bounds, gpus, side="left") + 1
    return np.where(gpus == 0, 0, np.where(is_whole, found, 1)).astype(np.int64)
