"""HAMi's texts on nodes and pods: what is read, what is written, what is refused."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import hami
from scheduler.api.cards import CardUse
from scheduler.api.hami import Card
from scheduler.api.pods import gpus
from scheduler.errors import BadInput
from tests import make, slices

INIT, SIDECAR, APP = gpus.ContainerKind.INIT, gpus.ContainerKind.SIDECAR, gpus.ContainerKind.APP
REGISTER = "metadata.annotations[hami.io/node-nvidia-register]"
ALLOCATED = "metadata.annotations[hami.io/vgpu-devices-allocated]"
T4 = {"count": 10, "devmem": 15360, "devcore": 100, "type": "NVIDIA-Tesla T4"}
READ_T4 = Card("GPU-a", 0, 10, 15360, 100, "NVIDIA-Tesla T4", 0, "hami-core", health=True)


def test_json_reads_absent_fields_as_gos_zero_values() -> None:
    """Go omits zeros: a card without ``health`` is unhealthy, one without ``mode`` has none."""
    assert hami.decode_register('[{"id":"GPU-a"}]') == (
        Card("GPU-a", 0, 0, 0, 0, "", 0, "", health=False),
    )
    text = json.dumps([{"id": "GPU-a", **T4, "mode": "hami-core", "health": True}])
    assert hami.decode_register(text) == (READ_T4,)


@pytest.mark.parametrize("left_out", ["index", "numa", "count", "mode", "health"])
def test_a_zero_that_go_left_out_reads_like_one_that_is_written(left_out: str) -> None:
    zeros = {"index": 0, "numa": 0, "count": 0, "mode": "", "health": False}
    written = {"id": "GPU-a", **T4, **zeros}
    short = {key: value for key, value in written.items() if key != left_out}
    assert hami.decode_register(json.dumps([short])) == hami.decode_register(json.dumps([written]))


def test_json_ignores_what_newer_plugins_add_and_blanks_around_it() -> None:
    card = {"id": "GPU-a", **T4, "mode": "hami-core", "health": True, "devicevendor": "NVIDIA"}
    card |= {"migProfiles": None, "custominfo": {"a": 1}, "migtemplate": None}
    assert hami.decode_register(f"\n {json.dumps([card])} ") == (READ_T4,)


def test_a_list_in_random_order_reads_sorted_by_index() -> None:
    """The plugin's order is a Go map's: the same node must not read differently twice."""
    listed = [{"id": f"GPU-{i}", "index": i, **T4} for i in (3, 0, 2, 1)]
    cards = hami.decode_register(json.dumps(listed))
    assert [card.id for card in cards] == ["GPU-0", "GPU-1", "GPU-2", "GPU-3"]
    assert hami.decode_register(json.dumps(listed[::-1])) == cards


def test_nine_text_fields_are_uuid_count_mem_cores_type_numa_healthy_index_mode() -> None:
    text = "GPU-f8e7,10,15360,100,NVIDIA-Tesla T4,1,true,2,mps:"
    assert hami.decode_register(text) == (
        Card("GPU-f8e7", 2, 10, 15360, 100, "NVIDIA-Tesla T4", 1, "mps", health=True),
    )


def test_seven_text_fields_mean_index_0_and_mode_hami_core() -> None:
    text = "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:GPU-b,10,15360,100,T4,0,false:"
    first, second = hami.decode_register(text)
    assert first == READ_T4
    assert (second.id, second.index, second.mode, second.health) == ("GPU-b", 0, "hami-core", False)


def test_empty_text_records_are_skipped_and_forms_may_mix() -> None:
    text = "GPU-b,10,1,100,T4,0,true,1,mps::GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:"
    assert [card.id for card in hami.decode_register(text)] == ["GPU-a", "GPU-b"]
    assert hami.decode_register(":") == ()
    assert hami.decode_register("[]") == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("GPU-a,10,15360,100,T4,0,true", id="text without a colon"),
        pytest.param("  ", id="blank"),
        pytest.param("GPU-a:", id="record without a comma"),
        pytest.param("GPU-a,10,15360,100,T4,0:", id="six fields"),
        pytest.param("GPU-a,10,15360,100,T4,0,true,0:", id="eight fields"),
        pytest.param("GPU-a,10,15360,100,T4,0,true,0,mps,x:", id="ten fields"),
        pytest.param("GPU-a,10,15360,100,T4,0,true,-1,hami-core:", id="negative index"),
        pytest.param("GPU-a,ten,15360,100,T4,0,true:", id="count is a word"),
        pytest.param("GPU-a,1_0,15360,100,T4,0,true:", id="count with an underscore"),
        pytest.param("GPU-a,10, 15360,100,T4,0,true:", id="memory with a blank"),
        pytest.param("GPU-a,10,15360,١٠٠,T4,0,true:", id="cores in digits of another script"),
        pytest.param("GPU-a,10,15360,100,T4,0,tRuE:", id="health in mixed case"),
        pytest.param(",10,15360,100,T4,0,true:", id="no uuid"),
        pytest.param('[{"index":1}]', id="JSON card without an id"),
        pytest.param('[{"id":"GPU-a","index":-1}]', id="JSON negative index"),
        pytest.param('[{"id":"GPU-a","devmem":-1}]', id="JSON negative memory"),
        pytest.param('[{"id":"GPU-a","count":"10"}]', id="JSON number as text"),
        pytest.param('[{"id":"GPU-a"},{"id":"GPU-a","index":1}]', id="a card twice"),
        pytest.param('[{"id":"GPU-a"}', id="JSON cut short"),
        pytest.param('{"id":"GPU-a"}', id="JSON object where a list is due"),
    ],
)
def test_a_malformed_register_is_refused_and_names_the_annotation(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        hami.decode_register(text)
    assert raised.value.field == REGISTER
    assert raised.value.problem


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        ([[CardUse("GPU-a", 3000, 30)]], "GPU-a,NVIDIA,3000,30:;"),
        (
            [[CardUse("GPU-b", 3000, 30), CardUse("GPU-a", 3000, 30)]],
            "GPU-b,NVIDIA,3000,30:GPU-a,NVIDIA,3000,30:;",
        ),
        ([[], [CardUse("GPU-a", 5000, 0)]], ";GPU-a,NVIDIA,5000,0:;"),
        (
            [[CardUse("GPU-a", 1000, 0)], [CardUse("GPU-a", 2000, 0)]],
            "GPU-a,NVIDIA,1000,0:;GPU-a,NVIDIA,2000,0:;",
        ),
        ([[], []], ";;"),
        ([], ""),
    ],
)
def test_devices_are_written_slot_by_slot_and_read_back(
    slots: list[list[CardUse]], text: str
) -> None:
    assert hami.encode_devices(slots) == text
    assert hami.decode_devices(text) == tuple(tuple(slot) for slot in slots)


@given(
    st.lists(
        st.lists(
            st.builds(
                CardUse,
                st.from_regex(r"GPU-[0-9a-f-]{1,36}(\[\d-\d\])?", fullmatch=True),
                st.integers(0, 2**31 - 1),
                st.integers(0, 100),
                st.just(""),
                # Hypothesis fills all fields that are not given.
                st.none(),
                st.none(),
            ),
            max_size=4,
        ),
        max_size=5,
    )
)
@settings(max_examples=slices.count_examples(200), derandomize=True, database=None, deadline=None)
def test_any_devices_survive_writing_and_reading(slots: list[list[CardUse]]) -> None:
    assert hami.decode_devices(hami.encode_devices(slots)) == tuple(map(tuple, slots))


@pytest.mark.parametrize(
    "text",
    [
        "GPU-a,NVIDIA,3000:;",
        "GPU-a:;",
        "GPU-a,NVIDIA,much,0:;",
        "GPU-a,NVIDIA,1,-1:;",
        "GPU-a,NVIDIA,1_0,0:;",
        "GPU-a,NVIDIA, 1,0:;",
        "GPU-a,NVIDIA,1,٣:;",
    ],
)
def test_a_malformed_device_record_is_refused_and_names_the_annotation(text: str) -> None:
    with pytest.raises(BadInput) as raised:
        hami.decode_devices(text)
    assert raised.value.field == ALLOCATED


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("GPU-a,NVIDIA,1,1:" * 1001 + ";", "has more than 1000 cards, the maximum"),
        (";" * 1001, "has more than 1000 containers, the maximum"),
        ("GPU-a,NVIDIA,1,1" + "," * 10_000, "has more than 10000 fields, the maximum"),
    ],
)
def test_a_claim_of_too_many_words_is_not_taken_apart(
    monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    def taken_apart(*_: object) -> None:
        pytest.fail("a record was read")

    monkeypatch.setattr(hami, "_read_use", taken_apart)
    with pytest.raises(BadInput) as raised:
        hami.decode_devices(text)
    assert (raised.value.field, raised.value.problem) == (ALLOCATED, told)


def test_a_claim_may_tell_a_thousand_cards_and_containers() -> None:
    assert len(hami.decode_devices("GPU-a,NVIDIA,1,1:;" * 1000)) == 1000


@pytest.mark.parametrize(
    "read",
    [
        hami.decode_devices,
        hami.decode_register,
        lambda text: hami.read_lock_holder(f",{text}"),
        lambda text: hami.decode_register(json.dumps([{"id": text, "index": -1}])),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "x" * 9000 + ":",
        f"a,N,{'x' * 900},1:",
        f"a,1,1,1,T4,0,{'x' * 9000}:",
        "\U0001f600,b," * 900 + ":",
    ],
)
def test_no_more_than_the_first_words_of_what_is_wrong_are_quoted(
    read: Callable[[str], object], text: str
) -> None:
    with pytest.raises(BadInput) as raised:
        read(text)
    assert len(raised.value.problem.encode()) < 300


def test_a_card_of_a_claim_has_no_endless_name() -> None:
    with pytest.raises(BadInput, match="has more than 1000 characters"):
        hami.decode_devices(f"{'x' * 1000},NVIDIA,1,1:;")


def test_a_node_lock_names_time_namespace_and_pod_and_a_bare_time_names_nobody() -> None:
    time = "2026-11-21T03:57:00Z"
    assert hami.read_lock_holder(f"{time},ns,pod") == (time, "ns", "pod")
    assert hami.read_lock_holder(time) is None
    odd = (
        ",",
        "ns,",
        ",pod",
        "ns,x?limit=1",
        "ns,../y",
        "../..,x",
        "ns,a b",
        "ns,X",
        f"ns,{'a' * 300}",
    )
    for text in (f"{time},ns", f"{time},ns,pod,more", *(f"{time},{names}" for names in odd)):
        with pytest.raises(BadInput, match="neither a time nor"):
            hami.read_lock_holder(text)


def test_a_bound_pod_is_charged_from_allocated_whatever_node_it_names() -> None:
    notes = {"hami.io/vgpu-devices-allocated": "n-GPU-0,NVIDIA,700,25:;"}
    cluster = make.cluster(
        nodes=[make.hami_node(name="n", cards=1)],
        pods=[
            make.pod(name="a", node="n", annotations=notes | {"hami.io/vgpu-node": "n"}, gpu=1),
            make.pod(name="b", node="n", annotations=notes | {"hami.io/vgpu-node": "m"}, gpu=1),
            make.pod(name="c", node="n", annotations=notes, gpu=1),
        ],
    )
    assert cluster.cards.columns.used[:, 0].tolist() == [75, 2100, 3]
