"""What pods are told on 200 mixed nodes: kube-scheduler's sentence, then figures, all within an event's note."""

import random
import re

import pytest

from scheduler.api import names, wire
from scheduler.api.door.decisions import Detail, Diagnosis, Hold
from scheduler.config import Config
from scheduler.errors import Mistake
from scheduler.plugins import words
from scheduler.telling import sayings
from tests import make
from tests.model import mixed_fleet


def told(pods: list[wire.Pod], nodes: list[wire.Node], there: list[wire.Pod]) -> dict[str, str]:
    """The note of every pod that finds no place."""
    cluster = make.cluster(nodes=nodes, pods=there)
    cycle = make.cycle(cluster=cluster, config=Config(preemption=False))
    found = {}
    for pod in pods:
        record = cluster.see_pod(pod)
        assert record is not None
        for hold in cycle.schedule([record]).holds:
            found[record.name] = sayings.say_why(hold).note
    return found


@pytest.fixture(scope="module")
def notes() -> dict[str, str]:
    return told(list(mixed_fleet.pending()), list(mixed_fleet.nodes()), list(mixed_fleet.running()))


NOTES = {
    "memory-of-cards": "0/200 nodes are available: 100 node(s) had no fitting GPU, 20 node(s) had untolerated taint(s), 4 node(s) were unschedulable, 46 Insufficient nvidia.com/gpu, 76 Insufficient nvidia.com/gpumem. CardInsufficientMemory on 353 GPUs: requested 48000 MiB a card, the largest free is 24258 on node-60. CardNotHealth on 6 GPUs, the first on node-63. Insufficient nvidia.com/gpu: requested 1, none of these nodes offers it.",
    "memory-of-any-card": "the largest free is 40960 on node-100.",
    "cores-and-count": "AllocatedCardsInsufficientRequest on 60 nodes: requested 4 GPUs, the most that would fit on one node is 3, on node-0.",
    "many-cards": "NodeInsufficientDevice on 100 nodes: requested 8 GPUs, the most on one node is 4, on node-0. Insufficient nvidia.com/gpu: requested 8, the most free is 4 on node-123.",
    "more-than-any": "NodeInsufficientDevice on 118 nodes: requested 16 GPUs, the most on one node is 8, on node-100.",
    "model": "requested H100, H200, there are Tesla-T4, A10 (reported as NVIDIA-Tesla T4, NVIDIA-NVIDIA A10).",
    "card-by-name": "CardUuidMismatch on ",
    "cpu": "0/200 nodes are available: 176 Insufficient cpu, 20 node(s) had untolerated taint(s), 4 node(s) were unschedulable. Insufficient cpu: requested 200, the most free is 61.28 on node-60.",
    "memory": "Insufficient memory: requested 1024Gi, the most free is 247Gi on node-60.",
    "disk": "Insufficient ephemeral-storage: requested 10Gi, none of these nodes offers it.",
    "fpga": "Insufficient example.com/fpga: requested 1, none of these nodes offers it.",
    "other-vendor": "Insufficient amd.com/gpu: requested 1, none of these nodes offers it.",
}  # fmt: skip


def test_twelve_pods_on_200_nodes_are_told_the_figures_that_matter(notes: dict[str, str]) -> None:
    assert notes.keys() == NOTES.keys()
    for name, text in NOTES.items():
        assert text in notes[name], notes[name]


def test_the_first_sentence_is_kube_schedulers_whose_parts_are_counts_and_reasons_sorted_as_text(
    notes: dict[str, str],
) -> None:
    for note in notes.values():
        first = re.match(r"0/200 nodes are available: (.+?)\.(?: [A-Z]|$)", note)
        assert first is not None, note
        parts = first[1].split(", ")
        assert parts == sorted(parts)
        assert all(re.fullmatch(r"\d+ \D.*", part) for part in parts)


def test_nodes_that_came_in_another_order_give_the_same_texts(notes: dict[str, str]) -> None:
    """A log that is run again, on nodes listed otherwise, tells the same."""
    nodes, there = list(mixed_fleet.nodes()), list(mixed_fleet.running())
    random.Random(3).shuffle(nodes)
    random.Random(4).shuffle(there)
    assert told(list(mixed_fleet.pending()), nodes, there) == notes


def test_new_figures_and_counts_are_about_the_same_and_new_reasons_are_not() -> None:
    reasons, detail = (
        (("Insufficient cpu", 3),),
        Detail("Insufficient cpu", "requested 2, 1 is free"),
    )
    before = sayings.say_why(Hold("u", Diagnosis(9, reasons, 0, (detail,))))
    same = Diagnosis(9, (("Insufficient cpu", 4),), 0, (Detail("Insufficient cpu", "0 is free"),))
    other = Diagnosis(9, (("Insufficient memory", 3),))
    assert sayings.say_why(Hold("u", same)).message != before.message
    assert sayings.say_why(Hold("u", same)).about == before.about
    assert sayings.say_why(Hold("u", other)).about != before.about
    # Who adds a node looks whether it counts.
    assert sayings.say_why(Hold("u", Diagnosis(10, reasons, 0, (detail,)))).about != before.about


def test_what_is_too_long_loses_whole_reasons_at_its_end_and_says_how_many() -> None:
    """A tenant may ask hundreds of resources with names of any length."""
    asked = {f"{letter * 200}.example.com/{i}": "1" for letter in "ab" for i in range(60)}
    note = told([make.pod(name="p", requests=asked)], [make.node(name="n" * 200)], [])["p"]
    assert len(note.encode()) <= sayings.NOTE_MAX
    head, rest = note.split(", and ")
    kept = head.removeprefix("0/1 nodes are available: ").split(", ")
    assert kept == sorted(f"1 Insufficient {name}" for name in asked)[: len(kept)]
    more, *figures, last = rest.removesuffix(".").split(". ")
    assert more == f"{120 - len(kept)} more reasons"
    assert all(one.startswith("Insufficient ") for one in figures)
    assert figures
    assert last == "And more figures"
    assert kept


def test_the_reasons_of_the_most_nodes_are_kept() -> None:
    reasons = tuple((f"reason {i:03} {'x' * 60}", i) for i in range(100))
    note = sayings.say_why(Hold("u", Diagnosis(4950, reasons))).note
    assert len(note.encode()) <= sayings.NOTE_MAX
    kept = re.findall(r"(\d+) reason \d", note)
    assert sorted(map(int, kept)) == list(range(100 - len(kept), 100))
    assert note.endswith(f", and {100 - len(kept)} more reasons.")


def test_details_that_do_not_fit_are_hinted_at_and_none_is_cut() -> None:
    details = tuple(Detail(f"d{i}", f"detail {i} {'é' * 40}") for i in range(20))
    note = sayings.say_why(Hold("u", Diagnosis(2, (("Insufficient cpu", 2),), 0, details))).note
    assert len(note.encode()) <= sayings.NOTE_MAX
    n = note.count("detail")
    assert note.count(f"{'é' * 40}.") == n
    assert 0 < n < 20
    assert note.endswith(". And more figures.")
    whole = sayings.say_why(Hold("u", Diagnosis(2, (), 0, details))).message
    assert whole.count("detail") == 20


def test_reasons_and_figures_share_the_room_and_nothing_is_left_out_that_fits() -> None:
    def note(n_reasons: int, n_details: int) -> str:
        reasons = tuple((f"reason {i:02} {'x' * 40}", 60 - i) for i in range(n_reasons))
        details = tuple(Detail(f"d{i}", f"Detail {i:02} {'y' * 40}") for i in range(n_details))
        return sayings.say_why(Hold("u", Diagnosis(60, reasons, 0, details))).note

    for n_reasons in (1, 3, 8, 9, 10, 15, 17, 50):
        for n_details in (0, 1, 3, 8, 9, 10, 15, 17, 50):
            found = note(n_reasons, n_details)
            assert len(found.encode()) <= sayings.NOTE_MAX
            told, figures = found.count("reason "), found.count("Detail")
            is_all = told == n_reasons and figures == n_details
            assert is_all == ("more" not in found), found
            assert told >= min(n_reasons, 8), found
            assert figures >= min(n_details, 8), found
            # What is left out would not have fitted.
            assert is_all or len(found) > sayings.NOTE_MAX - 120, found


def test_a_mistake_that_is_too_long_is_cut_between_words() -> None:
    note = sayings.say_why(Hold("u", problem=Mistake("spec.x", "wrong " * 400))).note
    assert len(note) <= sayings.NOTE_MAX
    assert note.endswith("wrong ...")


@pytest.mark.parametrize(
    ("resource", "asked", "free", "expected"),
    [
        (names.CPU, 12000, 7500, ("12", "7.5")),
        (names.CPU, 250, 249, ("0.25", "0.249")),
        (names.MEMORY, 64 << 30, (64 << 30) - 1, ("64Gi", "63.9Gi")),
        (names.MEMORY, 1500 << 20, (1500 << 20) - 1, ("1500Mi", "1499Mi")),
        ("hugepages-2Mi", 3 << 10, 2 << 10, ("3Ki", "2Ki")),
        (names.EPHEMERAL, 1001, 1000, ("1001 bytes", "1000 bytes")),
        ("example.com/x", 2, 1, ("2", "1")),
    ],
)
def test_what_is_free_is_never_rounded_to_what_is_asked(
    resource: str, asked: int, free: int, expected: tuple[str, str]
) -> None:
    assert words.write_pair(resource, asked, free) == expected


def test_of_many_names_the_first_are_told_and_a_long_one_is_only_counted() -> None:
    assert words.write_some(["a", "b"], "kind") == "a, b"
    assert words.write_some(["a", "b", "c", "d", "x" * 999], "kind") == "a, b, c and 2 more"
    assert words.write_some(["x" * 999], "kind") == "1 kind"


@pytest.mark.parametrize(
    ("gpus", "n_sharers", "text"),
    [
        (1, 1, "requested 1, none is free on these nodes."),
        (4, 3, "requested 4, the most free is 2 shares on g."),
    ],
)
def test_nodes_without_a_device_hide_no_shares_of_others(
    gpus: int, n_sharers: int, text: str
) -> None:
    cards = [make.card(uuid="GPU-0", sharers=n_sharers)]
    nodes = [make.node(name="plain"), make.hami_node(name="g", cards=cards)]
    held = {names.HAMI_ALLOCATED: "GPU-0,NVIDIA,100,10:;"}
    there = [make.pod(name="q", node="g", gpu=1, gpumem=100, gpucores=10, annotations=held)]
    asking = make.pod(name="p", gpu=gpus, gpumem=100, gpucores=10)
    assert f"Insufficient nvidia.com/gpu: {text}" in told([asking], nodes, there)["p"]


def test_what_no_node_offers_is_told_apart_from_what_pods_hold() -> None:
    nodes = [make.node(name="a", gpus=1), make.node(name="b")]
    there = [make.pod(name="q", node="a", gpu=1)]
    asking = make.pod(name="p", containers=[make.container(gpu=1, requests={names.AMD_GPU: 1})])
    note = told([asking], nodes, there)["p"]
    assert "Insufficient nvidia.com/gpu: requested 1, none is free on these nodes." in note
    assert "Insufficient amd.com/gpu: requested 1, none of these nodes offers it." in note
