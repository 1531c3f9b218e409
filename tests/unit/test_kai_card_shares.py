"""Shares of cards in KAI's annotations: running pods count as their part, and no pod is placed without a card."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.pods import kai_shares
from scheduler.api.pods.kai_shares import Share, read_share
from scheduler.api.queues.kai import CARD, count_mig_cards
from scheduler.errors import BadInput
from scheduler.simulate.run import schedule
from scheduler.tenancy.kai.terms import find_part, read_card_mib
from tests.unit.kai_worlds import Job, Queue, decide, make_objects
from tests.unit.test_queue_command import ask

Json = dict[str, Any]
GROUP = {names.KAI_CARD_GROUP: "c0ffee"}


def read(**annotations: str) -> Share | None:
    notes = {key.replace("_", "-"): text for key, text in annotations.items()}
    return read_share(notes)


def test_a_share_is_a_part_or_an_amount_of_one_card_or_several() -> None:
    assert read(gpu_fraction="0.5") == Share(1, 500_000, 0)
    assert read(gpu_fraction="0.07") == Share(1, 70_000, 0)
    assert read(gpu_fraction=".5") == Share(1, 500_000, 0)
    assert read(gpu_fraction="0." + "0" * 29 + "1") == Share(1, 1, 0)
    assert read(gpu_fraction="0.1", gpu_fraction_num_devices="3") == Share(3, 100_000, 0)
    assert read(gpu_memory="2048", gpu_fraction_num_devices="2") == Share(2, 0, 2048)
    assert read(mps="true") is None


@pytest.mark.parametrize(
    ("notes", "key", "allowed"),
    [
        ({"gpu_fraction": text}, names.KAI_FRACTION, "is not a decimal between 0 and 1")
        for text in (
            "0", "1", "-0.5", "+0.5", "nan", "inf", "half", "", ".", "0." + "1" * 99, "1e-999999999", "1e-1", "\u0660.\u0665",
            " 0.5 ", "0.5\n", "0.5_0", "1/2",
        )
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


@given(st.text("0123456789", min_size=1, max_size=30).filter(lambda text: int(text) > 0))
def test_no_share_counts_as_less_than_it_is(digits: str) -> None:
    share = read(gpu_fraction=f"0.{digits}")
    exact = Fraction(int(digits), 10 ** len(digits)) * CARD
    assert share is not None
    assert exact <= share.millionths < exact + 1


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_an_amount_is_a_part_of_the_card_and_never_more_than_all_of_it(
    mib: int, whole: int
) -> None:
    exact = Fraction(mib, whole) if whole else Fraction(1)
    part = min(CARD, -(-exact.numerator * CARD // exact.denominator))
    assert find_part(Share(1, 0, mib), whole) == part


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


HOLDER = Job("", on=["n1"], labels=GROUP, namespace=names.KAI_RESERVATIONS)


def test_pods_that_share_a_card_count_as_their_part_and_the_card_once() -> None:
    """The pod of KAI's binder holds the card on the node, and nothing in any queue."""
    jobs = {
        "half": _share("a", (names.KAI_FRACTION, "0.5")),
        "quarter": _share("b", (names.KAI_FRACTION, "0.25")),
        "holder": HOLDER,
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
    jobs = {"some": _share("a", (names.KAI_GPU_MEMORY, "20000")), "holder": HOLDER, "x": Job("a")}
    queues = {"a": Queue(1, limit=1)}
    node = make_objects({"n1": 2}, {}, {})[0]
    message = decide({"n1": node}, queues, jobs).messages["x"]
    assert "1 are held" in message  # The node does not say what its cards have.
    node["metadata"].setdefault("labels", {})[names.GPU_MIB] = "40050"
    message = decide({"n1": node}, queues, jobs).messages["x"]
    assert "0.5 are held" in message


def find_held(*jobs: Job, nodes: int = 1) -> tuple[float, float]:
    """How much of cards queues a and b hold."""
    named = {f"j{i}": one for i, one in enumerate(jobs)}
    fleet = {f"n{i + 1}": 8 for i in range(nodes)}
    rows = ask("list", objects=make_objects(fleet, {"a": Queue(4), "b": Queue(4)}, named))["kaiQueues"]  # fmt: skip
    held = {row["name"]: float(row["uses"][2]["held"]) for row in rows}
    return held["a"], held["b"]


def place(jobs: dict[str, Job]) -> dict[str, str]:
    """The nodes of pods that waited, where queue a is limited to a card."""
    found = schedule(make_objects({"n1": 8}, {"a": Queue(1, limit=1)}, jobs))
    return {row["name"]: row["node"] or "" for row in found["pods"]}


def _holder(*groups: str, node: str = "n1") -> list[Job]:
    labels = [{names.KAI_CARD_GROUP: group} for group in groups]
    return [replace(HOLDER, labels=one, on=[node]) for one in labels]


def _several(queue: str, n: str, *groups: str, part: str = "0.5") -> Job:
    """A pod that shares several cards, as KAI's binder labels it."""
    notes = {names.KAI_FRACTION: part, names.KAI_SHARED_CARDS: n}
    labels = {f"{names.KAI_CARD_GROUPS}{group}": group for group in groups}
    return Job(queue, gpus=0, on=["n1"], notes=notes, labels=labels)


def test_who_may_only_create_pods_holds_no_queue_by_annotations() -> None:
    """It binds a pod itself and writes any share on it, but makes no pod in KAI's namespace."""
    notes = {names.KAI_FRACTION: "0.9", names.KAI_SHARED_CARDS: "2147483647"}
    evil = Job("b", gpus=0, on=["n1"], notes=notes, stays=True, namespace="evil")
    own = replace(HOLDER, namespace="evil")
    tree = {"root": Queue(8, 8), "a": Queue(4, 8, parent="root"), "b": Queue(4, 8, parent="root")}
    for labels in ({}, GROUP):
        jobs = {"evil": replace(evil, labels=labels), "own": own, "train": Job("a")}
        assert decide({"n1": 8}, tree, jobs).placed == {"train": "n1"}
    # A group of a card that is reserved there gives it a part of that card only, however many there are.
    again = [replace(evil, labels=GROUP) for _ in range(50)]
    assert find_held(*again, HOLDER) == (0, 1)
    # In no queue they take nothing away from what there is.
    assert list_queues(make_objects({"n1": 8}, {"all": Queue(-1)}, {
        "evil": replace(evil, queue=""), "w": Job("all", gpus=99),
    }))["all"] == "8"  # fmt: skip


def test_a_share_counts_where_its_card_is_reserved() -> None:
    half = _share("a", (names.KAI_FRACTION, "0.5"))
    assert find_held(half) == (0, 0)
    assert find_held(half, *_holder("other")) == (0, 0)
    assert find_held(half, *_holder("c0ffee", node="n2"), nodes=2) == (0, 0)
    assert find_held(half, replace(HOLDER, on=[])) == (0, 0)
    assert find_held(half, HOLDER) == (0.5, 0)


def test_of_several_cards_those_count_that_are_reserved() -> None:
    reserved = _holder("g1", "g2", "g3")
    assert find_held(_several("a", "2", "g1", "g2"), *reserved) == (1, 0)
    assert find_held(_several("a", "2", "g1", "g4"), *reserved) == (0.5, 0)
    assert find_held(_several("a", "1", "a", "g2"), *reserved) == (0.5, 0)
    assert find_held(_several("a", "2147483647", "g1", "g2", "g3"), *reserved) == (1.5, 0)
    assert find_held(_several("a", "2", "g1", "g2", "g3"), *reserved) == (1, 0)
    many = _several("a", "many", *(f"g{i}" for i in range(200)))
    assert find_held(many, *reserved) == (3, 0)


def test_pods_of_one_card_hold_the_card_at_most_the_older_ones_first() -> None:
    old = _share("a", (names.KAI_FRACTION, "0.75"), age=20)
    new = _share("b", (names.KAI_FRACTION, "0.5"), age=10)
    assert find_held(new, HOLDER, old) == (0.75, 0.25)


@pytest.mark.parametrize(
    "notes",
    [
        {names.KAI_FRACTION: "NaN"},
        {names.KAI_FRACTION: "1e-999999999"},
        {names.KAI_GPU_MEMORY: "little"},
        {names.KAI_SHARED_CARDS: "1"},
        {},
    ],
)
def test_no_edit_of_an_annotation_makes_a_running_pod_hold_less_than_its_card(
    notes: dict[str, str],
) -> None:
    edited = Job("a", gpus=0, on=["n1"], notes=notes, labels=GROUP)
    assert find_held(edited, HOLDER) == (1, 0)
    assert place({"edited": edited, "holder": HOLDER, "train": Job("a")}) == {"train": ""}
    # While it waits it holds nothing, and is refused if it says anything.
    waiting = {"edited": replace(edited, on=[]), "train": Job("a")}
    assert place(waiting) == {"train": "n1", "edited": "" if notes else "n1"}


def test_who_requests_cards_itself_is_served_whatever_the_annotation_says() -> None:
    jobs = {"x": Job("a", notes={names.KAI_FRACTION: "0.5"})}
    assert decide({"n1": 1}, {"a": Queue(1)}, jobs).placed == {"x": "n1"}
    refused = kai_shares.refuse_share(Share(1, 1, 0)).text
    assert "the webhook for pods with devices" in refused
    assert refused.endswith("with HAMi's device plugin")


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
