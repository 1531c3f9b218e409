"""Shares of cards in KAI's annotations: running pods count as their part, and no pod is placed without a card."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.pods import kai_shares
from scheduler.api.pods.kai_shares import Share, read_share
from scheduler.api.queues.kai import CARD, count_mig_cards
from scheduler.errors import BadInput
from scheduler.simulate.run import schedule
from scheduler.tenancy.kai.terms import find_shared, read_card_mib
from tests.unit.kai_worlds import Job, Queue, decide, make_objects
from tests.unit.test_queue_command import ask

Json = dict[str, Any]
GROUP = {names.KAI_CARD_GROUP: "c0ffee"}


def read(**annotations: str) -> Share | None:
    notes = {key.replace("_", "-"): text for key, text in annotations.items()}
    return read_share(wire.Pod(wire.Meta(name="p", annotations=notes), wire.PodSpec()))


def test_a_share_is_a_part_or_an_amount_of_one_card_or_several() -> None:
    assert read(gpu_fraction="0.5") == Share(1, 500_000, 0)
    assert read(gpu_fraction="0.07") == Share(1, 70_000, 0)
    assert read(gpu_fraction="1e-999999") == Share(1, 1, 0)
    assert read(gpu_fraction="0.1", gpu_fraction_num_devices="3") == Share(3, 100_000, 0)
    assert read(gpu_memory="2048", gpu_fraction_num_devices="2") == Share(2, 0, 2048)
    assert read(mps="true") is None


@pytest.mark.parametrize(
    ("notes", "key", "allowed"),
    [
        ({"gpu_fraction": text}, names.KAI_FRACTION, "is not a number between 0 and 1")
        for text in ("0", "1", "-0.5", "nan", "inf", "half", "", "0." + "1" * 99)
    ]
    + [
        ({"gpu_memory": text}, names.KAI_GPU_MEMORY, "is not a number of MiB from 1")
        for text in ("0", "-1", "1.5", "4Gi", "", "²", "9" * 5000)
    ]
    + [
        ({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "0"}, names.KAI_SHARED_CARDS, "from 1"),
        ({"gpu_fraction_num_devices": "2"}, names.KAI_SHARED_CARDS, "means nothing without"),
        ({"gpu_fraction": "0.5", "gpu_memory": "5"}, names.KAI_GPU_MEMORY, "one of them"),
    ],
)  # fmt: skip
def test_what_kai_refuses_is_refused_by_name(notes: dict[str, str], key: str, allowed: str) -> None:
    with pytest.raises(BadInput) as error:
        read(**notes)
    assert str(error.value).startswith(f"metadata.annotations[{key}]: ")
    assert allowed in str(error.value)
    assert len(str(error.value)) < 300


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True, allow_subnormal=False))
def test_no_share_counts_as_less_than_it_is(part: float) -> None:
    share = read(gpu_fraction=repr(part))
    if share is not None:
        assert 0 < Fraction(repr(part)) <= Fraction(share.millionths, CARD) <= 1


@given(st.integers(1, 8), st.integers(1, 10**6), st.integers(0, 10**6))
def test_an_amount_is_a_part_of_the_card_and_never_more_than_all_of_it(
    cards: int, mib: int, whole: int
) -> None:
    found = find_shared(Share(cards, 0, mib), whole)
    exact = Fraction(mib, whole) if whole else Fraction(1)
    assert found == cards * min(CARD, -(-exact.numerator * CARD // exact.denominator))


def test_the_memory_of_cards_is_read_in_hundreds() -> None:
    assert read_card_mib({names.GPU_MIB: "81559"}) == 81_500
    for text in ("", "-1", "much", "²", "9" * 5000):
        assert read_card_mib({names.GPU_MIB: text}) == 0


def test_a_pod_that_waits_is_refused_with_what_it_can_request_in_its_place() -> None:
    texts = {
        "gpu-fraction": ("0.333", "nvidia.com/gpu: 2 and nvidia.com/gpumem-percentage: 34"),
        "gpu-memory": ("4000", "nvidia.com/gpu: 2 and nvidia.com/gpumem: 4000"),
    }
    for key, (value, wanted) in texts.items():
        notes = {key: value, names.KAI_SHARED_CARDS: "2"}
        objects = make_objects({"n1": 4}, {"a": Queue(4)}, {"x": Job("a", gpus=0, notes=notes)})
        found = schedule(objects)
        (row,) = (one for one in found["pods"] if one["name"] == "x")
        assert row["node"] is None
        (mistake,) = found["mistakes"]
        assert mistake["field"] == f"metadata.annotations[{key}]"
        assert wanted in mistake["problem"]


def _share(queue: str, note: tuple[str, str], **more: Any) -> Job:
    return replace(Job(queue, gpus=0, on=["n1"], notes=dict([note]), labels=GROUP), **more)


def test_pods_that_share_a_card_count_as_their_part_and_the_card_once() -> None:
    """The pod of KAI's binder holds the card on the node, and nothing in any queue."""
    jobs = {
        "half": _share("a", (names.KAI_FRACTION, "0.5")),
        "quarter": _share("b", (names.KAI_FRACTION, "0.25")),
        "holder": Job("", on=["n1"], labels=GROUP, namespace=names.KAI_RESERVATIONS),
        "x": Job("a"),
        "y": Job("b"),
        "z": Job("b"),
    }
    queues = {"a": Queue(1, limit=1), "b": Queue(1)}
    found = decide({"n1": 3}, queues, jobs)
    assert found.placed == {"y": "n1", "z": "n1"}
    assert "0.5 are held, and 1 more are wanted" in found.messages["x"]
    assert not found.gone


def test_a_share_in_mib_is_a_part_of_the_cards_of_its_node() -> None:
    jobs = {"some": _share("a", (names.KAI_GPU_MEMORY, "20000")), "x": Job("a")}
    queues = {"a": Queue(1, limit=1)}
    node = make_objects({"n1": 2}, {}, {})[0]
    message = decide({"n1": node}, queues, jobs).messages["x"]
    assert "1 are held" in message  # The node does not say what its cards have.
    node["metadata"].setdefault("labels", {})[names.GPU_MIB] = "40050"
    message = decide({"n1": node}, queues, jobs).messages["x"]
    assert "0.5 are held" in message


def test_who_requests_cards_itself_is_served_whatever_the_annotation_says() -> None:
    jobs = {"x": Job("a", notes={names.KAI_FRACTION: "0.5"})}
    assert decide({"n1": 1}, {"a": Queue(1)}, jobs).placed == {"x": "n1"}
    assert kai_shares.refuse_share(Share(1, 1, 0)).text.endswith("with HAMi's device plugin")


def test_mig_slices_count_as_so_many_cards_as_their_names_say() -> None:
    node = make_objects({"n1": 1}, {}, {})[0]
    small, large = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
    node["status"]["allocatable"] |= {small: "7", large: "2"}
    jobs = {
        "runs": Job("a", gpus=0, on=["n1"], asks={large: "1"}),
        "x": Job("a", gpus=0, asks={small: "2"}),
        "y": Job("a", gpus=0, asks={small: "1"}),
        "z": Job("b"),
    }
    queues = {"a": Queue(4, limit=5), "b": Queue(-1)}
    found = decide({"n1": node}, queues, jobs)
    assert found.placed == {"x": "n1", "z": "n1"}
    assert "limited to 5 of gpu: 5 are held, and 1 more are wanted" in found.messages["y"]
    # All there is: a card, seven slices of one, and two of three.
    listed = list_queues(make_objects({"n1": node}, {"all": Queue(-1)}, {"w": Job("all", gpus=99)}))
    assert listed["all"] == "14"


def list_queues(objects: list[Json]) -> dict[str, str]:
    """The fair share of GPUs of each queue."""
    rows = ask("list", objects=objects)["kaiQueues"]
    return {row["name"]: row["uses"][2]["fairShare"] for row in rows}


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("nvidia.com/mig-1g.5gb", 1),
        ("nvidia.com/mig-7g.80gb", 7),
        ("nvidia.com/mig-1g.10gb.me", 0),
        ("nvidia.com/mig-g.5gb", 0),
        ("nvidia.com/mig-999999999g.5gb", 0),
        ("nvidia.com/mig-\u0661g.5gb", 0),
        ("amd.com/mig-1g.5gb", 0),
        ("nvidia.com/gpu", 0),
    ],
)
def test_the_name_of_a_slice_says_as_how_many_cards_it_counts(name: str, cards: int) -> None:
    assert count_mig_cards(name) == cards
