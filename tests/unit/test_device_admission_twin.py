"""Any pod becomes what its twin says; and whatever a pod holds, there is an answer."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import kinds
from scheduler.api.admission.settings import AdmissionSettings, NvidiaAdmission
from scheduler.devices.admission.steps import Allowed, Denied, Error
from scheduler.kube.webhook import devices, reviews
from scheduler.kube.webhook.devices import DeviceAdmission
from tests import slices
from tests.oracles import device_admission as twin
from tests.unit.device_pods import review
from tests.unit.jsonpatch import apply_patch
from tests.unit.webhook_reviews import write_review

Json = dict[str, Any]
_NAMES = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/priority")  # fmt: skip
_AMOUNTS = st.sampled_from(
    ["0", "1", "2", "50", "99.5", "100", "100.5", "101", "1k", "1Ki", "500m"]
)
_LISTS = st.dictionaries(st.sampled_from((*_NAMES, "cpu")), _AMOUNTS, max_size=4)
_CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"])},
    optional={
        "resources": st.fixed_dictionaries({}, optional={"limits": _LISTS, "requests": _LISTS}),
        "env": st.builds(lambda: [{"name": "A", "value": "1"}]),
        "securityContext": st.fixed_dictionaries({}, optional={"privileged": st.booleans()}),
    },
)
_SCHEDULERS = st.sampled_from(["", "default-scheduler", "evenkeel", "second", "hami-scheduler", "other"])  # fmt: skip
_PODS = st.fixed_dictionaries({
    "spec": st.fixed_dictionaries(
        {"containers": st.lists(_CONTAINERS, max_size=3)},
        optional={
            "initContainers": st.lists(_CONTAINERS, max_size=2),
            "schedulerName": _SCHEDULERS,
            "nodeName": st.sampled_from(["", "n1"]),
            "runtimeClassName": st.just("mine"),
        },
    )
})  # fmt: skip
_RESOURCES = st.permutations(["", *_NAMES])
_NVIDIA = st.one_of(
    st.builds(NvidiaAdmission, default_count=st.integers(0, 2), core_policy=st.sampled_from(["default", "force"]),
              runtime_class=st.sampled_from(["", "nvidia"]), hides_cards=st.booleans()),
    _RESOURCES.filter(lambda names: names[0] != "").map(lambda names: NvidiaAdmission(
        count=names[0], memory=names[1], memory_percent=names[2], cores=names[3], priority=names[4])),
)  # fmt: skip
_SETTINGS = st.builds(
    AdmissionSettings,
    scheduler_names=st.sampled_from(
        [("evenkeel",), ("evenkeel", "second"), ("default-scheduler",)]
    ),
    overwrites_default=st.booleans(),
    taken_over=st.sampled_from([(), ("hami-scheduler",)]),
    nvidia=_NVIDIA,
)


@settings(max_examples=slices.count_examples(5000), deadline=None)
@given(pod=_PODS, admission=_SETTINGS, is_over_quota=st.booleans())
def test_a_pod_becomes_what_its_twin_says(
    pod: Json, admission: AdmissionSettings, is_over_quota: bool
) -> None:
    verdict = review(pod, admission, lambda _: "quota" if is_over_quota else None)
    try:
        wanted = twin.admit(pod, admission, is_over_quota=is_over_quota)
    except twin.Refused as refused:
        what, word = refused.args
        assert isinstance(verdict, Denied if what == "denied" else Error)
        assert word in verdict.message
    else:
        assert isinstance(verdict, Allowed)
        assert apply_patch(pod, verdict.patch) == wanted


_LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6) | st.sampled_from(["1", "-1", "9" * 40, "1e999999999", "default-scheduler", "100"])
)  # fmt: skip
_KEYS = st.sampled_from([
    "spec", "containers", "initContainers", "resources", "limits", "requests", "env", "name", "value", "valueFrom",
    "securityContext", "privileged", "schedulerName", "nodeName", "runtimeClassName", "", *_NAMES,
])  # fmt: skip
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)  # fmt: skip
_BAD_LISTS = st.dictionaries(st.sampled_from(_NAMES), _LEAVES, max_size=3) | _VALUES
_BAD_CONTAINERS = st.lists(
    st.fixed_dictionaries({}, optional={
        "name": _LEAVES, "env": st.lists(st.dictionaries(_KEYS, _LEAVES)) | _VALUES, "securityContext": _VALUES,
        "resources": st.fixed_dictionaries({}, optional={"limits": _BAD_LISTS, "requests": _BAD_LISTS}) | _VALUES,
    }) | _VALUES, max_size=2,
)  # fmt: skip
_BAD_PODS = st.fixed_dictionaries({"spec": st.fixed_dictionaries({}, optional={
    "containers": _BAD_CONTAINERS, "initContainers": _BAD_CONTAINERS, "schedulerName": _LEAVES,
    "nodeName": _LEAVES, "runtimeClassName": _LEAVES,
}) | _VALUES}) | _VALUES  # fmt: skip


def _answer(body: bytes, admission: AdmissionSettings) -> Json:
    answer = devices.answer_pod(body, DeviceAdmission(admission))
    response: Json = msgspec.json.decode(answer.body)["response"]
    assert response["uid"] == "u1"
    return response


@settings(max_examples=slices.count_examples(5000), deadline=None)
@given(pod=_BAD_PODS, admission=_SETTINGS)
def test_any_pod_has_an_answer(pod: Any, admission: AdmissionSettings) -> None:
    response = _answer(write_review(kinds.PODS, pod), admission)
    if response["allowed"] and "patch" in response:
        patch = msgspec.json.decode(base64.b64decode(response["patch"]))
        assert apply_patch(pod, patch) != pod
    if not response["allowed"]:
        assert response["status"]["code"] in (400, 403, 500)


def test_numbers_and_depths_that_no_computer_has() -> None:
    for amount in (b"9" * 300, b"9" * 5000, b"1e400", b"-0.0", b"[" * 100_000 + b"]" * 100_000):
        for key in (b"nvidia.com/gpumem-percentage", b"nvidia.com/gpu", b"nvidia.com/priority"):
            pod = b'{"spec":{"containers":[{"resources":{"limits":{"%s":%s}}}]}}' % (key, amount)
            body = write_review(kinds.PODS, "OBJECT").replace(b'"OBJECT"', pod)
            try:
                _answer(body, AdmissionSettings())
            except reviews.NotReview:
                assert amount.startswith(b"[")
