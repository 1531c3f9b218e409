"""Whatever a review holds, the webhook answers it or says that it is none."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import kinds, names
from scheduler.api.jobs import table
from scheduler.api.kind import Kind
from scheduler.kube.webhook import reviews
from tests import slices
from tests.unit.webhook_reviews import KNOWN, write_review

_KINDS = [
    *(one.kind for one in table.TABLE),
    kinds.PODS,
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
    kinds.LEADER_WORKER_SETS,
]
_LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6)
    | st.sampled_from(["true", "1", "3", "Indexed", "K8sJobMode", "LeaderReady", "a-b", "9" * 40])
)  # fmt: skip
_KEYS = sorted({
    "metadata", "spec", "status", "labels", "annotations", "ownerReferences", "finalizers", "template", "suspend",
    "replicas", "parallelism", "completions", "runPolicy", "replicatedJobs", "name", "mpiReplicaSpecs", "Worker",
    "headGroupSpec", "workerGroupSpecs", "rayClusterSpec", "clusterSelector", "leaderWorkerTemplate", "workerTemplate",
    "leaderTemplate", "size", "containers", "initContainers", "resources", "requests", "env", "ports", "nodeSelector",
    "overhead", "schedulingGates", "controller", "kind", "apiVersion", "ordinals", "start", "readyReplicas", "tolerations",
    "enableInTreeAutoscaling", "autoscalerOptions", "submissionMode", "submitterPodTemplate", "schedulingPolicy",
    names.KUEUE_QUEUE, names.KUEUE_GROUP, names.KUEUE_TOTAL, names.KUEUE_LEAST, names.KUEUE_EQUAL_COMPLETIONS,
    names.KUEUE_SLICES, names.KUEUE_SLICE_SIZE, names.KUEUE_SLICE_LEVEL, names.KUEUE_UNCONSTRAINED, names.KUEUE_PARENT,
    names.KUEUE_ROLE, names.KUEUE_RUN_TIME, names.KUEUE_CLASS, names.KUEUE_MANAGED, names.LWS_NAME, names.LWS_GROUP,
    names.LWS_SIZE, names.SET_INDEX, names.KUEUE_INDEX_OFFSET,
})  # fmt: skip
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=30,
)  # fmt: skip
_TEXTS = st.dictionaries(st.sampled_from(_KEYS), _LEAVES, max_size=6)
_META = st.fixed_dictionaries(
    {"labels": _TEXTS | _VALUES, "annotations": _TEXTS | _VALUES},
    optional={"name": _VALUES, "ownerReferences": _VALUES, "finalizers": _VALUES},
)
_SPEC = st.fixed_dictionaries(
    {}, optional={key: st.fixed_dictionaries({"metadata": _META, "spec": _VALUES}) | _VALUES if key == "template" else _VALUES for key in _KEYS if "/" not in key}
)  # fmt: skip
_OBJECTS = st.fixed_dictionaries({"metadata": _META | _VALUES, "spec": _SPEC | _VALUES}) | _VALUES


def _answer(body: bytes) -> None:
    for answer in (reviews.answer_defaults, reviews.answer_checks):
        decoded = msgspec.json.decode(answer(body, KNOWN).body)
        assert decoded["kind"] == "AdmissionReview"
        assert decoded["response"]["uid"] == "u1"


@settings(max_examples=slices.count_examples(4000), deadline=None)
@given(kind=st.sampled_from(_KINDS), found=_OBJECTS, before=st.none() | _OBJECTS)
def test_any_object_has_an_answer(kind: Kind, found: Any, before: Any) -> None:
    try:
        body = write_review(kind, found, before)
    except OverflowError:
        # The encoder of the test writes no larger numbers; below is one as it may come.
        return
    _answer(body)


@settings(max_examples=slices.count_examples(1000), deadline=None)
@given(body=st.binary(max_size=80) | _VALUES.map(repr).map(str.encode))
def test_what_is_no_review_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(reviews.NotReview):
        reviews.answer_defaults(body, KNOWN)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}',
        b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u","kind":{"kind":"Pod"}}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{"uid":"u","kind":{"kind":"Pod"}}}',
    ],
)
def test_broken_reviews(body: bytes) -> None:
    with pytest.raises(reviews.NotReview):
        reviews.answer_checks(body, KNOWN)


def test_numbers_that_no_computer_has() -> None:
    number = b"9" * 300
    for kind in _KINDS:
        found = b'{"metadata":{"labels":{"%s":"q"}},"spec":{"parallelism":%s,"replicas":%s}}' % (names.KUEUE_QUEUE.encode(), number, number)  # fmt: skip
        body = write_review(kind, "OBJECT").replace(b'"OBJECT"', found)
        with contextlib.suppress(reviews.NotReview):
            _answer(body)
