"""The examples do what their comments claim, in the small cluster that lies beside them."""

from pathlib import Path
from typing import Any

import pytest

from scheduler.simulate import schedule
from tests.docs import examples

Json = dict[str, Any]


def placed(*files: str) -> list[Json]:
    objects = [one for name in ("nodes.yaml", *files) for one in examples.read(name)]
    found: list[Json] = schedule(objects)["pods"]
    assert found
    return found


def cards(pods: list[Json], workload: str) -> dict[str, set[str]]:
    """Node → the cards in use on it by the pods of a workload."""
    used: dict[str, set[str]] = {}
    for pod in pods:
        if pod["name"].startswith(workload):
            assert pod["node"], pod["message"]
            used.setdefault(pod["node"], set()).update(card["id"] for card in pod["devices"])
    return used


def sizes(used: dict[str, set[str]]) -> list[int]:
    return sorted(len(on_node) for on_node in used.values())


def test_replicas_share_cards_and_stand_on_both_nodes() -> None:
    pods = placed("inference.yaml")
    assert sizes(cards(pods, "chat")) == [1, 1]
    assert {(one["memoryMiB"], one["cores"]) for pod in pods for one in pod["devices"]} == {
        (5000, 30)
    }


def test_each_worker_has_a_whole_node() -> None:
    assert cards(placed("training.yaml"), "train").keys() == {"whole-1", "whole-2"}


def test_a_worker_without_room_waits_alone() -> None:
    """What the file says of gangs."""
    objects = examples.read("nodes.yaml") + examples.read("training.yaml")
    rest = [one for one in objects if one["metadata"]["name"] != "whole-2"]
    nodes = [pod["node"] for pod in schedule(rest)["pods"]]
    assert nodes == ["whole-1", None]


def test_the_policy_of_a_namespace_holds_for_its_pods_and_no_others() -> None:
    assert sizes(cards(placed("team-policy.yaml"), "notebooks")) == [4]
    objects = examples.read("nodes.yaml") + examples.read("team-policy.yaml")
    for one in objects:
        one["metadata"].pop("namespace", None)
    pods: list[Json] = schedule(objects)["pods"]
    assert sizes(cards(pods, "notebooks")) != [4]


def test_what_serves_is_spread_and_what_runs_in_batches_is_packed() -> None:
    pods = placed("spread-and-pack.yaml")
    assert sizes(cards(pods, "api")) == [2, 2]
    assert sizes(cards(pods, "embed")) == [1]
    assert cards(pods, "report").keys().isdisjoint(cards(pods, "embed"))


def make_nodes(*sizes: int) -> list[Json]:
    """Nodes with eight GPUs, in blocks of racks of so many nodes; a rack is an NVLink domain."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"n{rack:02}-{i:02}",
                "labels": {
                    "topology.kubernetes.io/block": f"b{rack // 8}",
                    "topology.kubernetes.io/rack": f"r{rack:02}",
                    "nvidia.com/gpu.clique": f"c{rack:02}",
                },
            },
            "status": {
                "allocatable": {
                    "cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8",
                }
            },
        }
        for rack, size in enumerate(sizes)
        for i in range(size)
    ]  # fmt: skip


def place_on(nodes: list[Json], file: str) -> dict[str, str | None]:
    """Where the pods of a file go, by name."""
    pods: list[Json] = schedule(nodes + examples.read(file))["pods"]
    return {pod["name"]: pod["node"] for pod in pods}


def test_512_gpus_are_given_at_once_in_one_block_and_whole_nvlink_domains() -> None:
    """The first block has a rack too small: of its nodes none is taken."""
    found = place_on(make_nodes(9, 9, 9, 9, 9, 9, 9, 7, *[9] * 8), "large-training.yaml")
    assert len(found) == 64
    racks: dict[int, set[str]] = {}
    for name, node in found.items():
        assert node is not None
        racks.setdefault(int(name.split("-")[1]) // 8, set()).add(node.partition("-")[0])
    assert all(len(one) == 1 for one in racks.values())
    assert {int(rack[1:]) // 8 for one in racks.values() for rack in one} == {1}
    # With a node less in each block none is placed.
    short = place_on(make_nodes(*[9] * 7, 7, *[9] * 7, 7), "large-training.yaml")
    assert set(short.values()) == {None}


def test_prefill_and_decode_are_placed_together_and_decode_shares_a_rack() -> None:
    found = place_on(make_nodes(1, 1, 1), "prefill-decode.yaml")
    assert None not in found.values()
    assert len({node for name, node in found.items() if name.startswith("decode")}) == 1
    # Decode fits, prefill does not: neither is placed.
    assert set(place_on(make_nodes(1), "prefill-decode.yaml").values()) == {None}


def test_an_elastic_job_starts_with_two_workers_and_takes_what_is_there() -> None:
    nodes = list(place_on(make_nodes(2), "elastic.yaml").values())
    assert (len(nodes), nodes.count(None)) == (8, 4)
    half = make_nodes(1)
    half[0]["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    assert set(place_on(half, "elastic.yaml").values()) == {None}


@pytest.mark.parametrize("path", examples.ALL, ids=lambda path: str(path.name))
def test_an_example_says_what_it_is_for_and_stands_in_the_list(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert f"({path.name})" in (examples.FOLDER / "README.md").read_text(encoding="utf-8")


def test_who_borrows_gives_back_to_its_owner_and_what_is_left_over_waits() -> None:
    found = schedule(examples.read("queues.yaml"))
    state = {one["name"]: one["state"] for one in found["workloads"]}
    assert state == {
        "segment": "running", "detect": "waits", "transcribe": "running", "translate": "admitted", "depth": "waits",
    }  # fmt: skip
    used = {one["name"]: one["uses"][0]["used"] for one in found["queues"]}
    assert used == {"research": "16", "vision": "8", "speech": "8"}


def test_jobs_with_a_queue_start_as_far_as_there_is_quota() -> None:
    pods = schedule(examples.read("nodes.yaml") + examples.read("queued-jobs.yaml"))["pods"]
    on_nodes = {pod["name"].partition("-")[0]: pod["node"] is not None for pod in pods}
    assert on_nodes == {"segment": True, "dictate": True, "detect": False}


def test_a_queue_of_kai_gets_its_own_back_and_the_others_wait() -> None:
    found = schedule(examples.read("kai-queues.yaml"))
    rows = {one["name"]: one for one in found["pods"]}
    assert [one["name"] for one in rows["translate"]["victims"]] == ["detect"]
    assert not rows["depth"]["victims"]
    assert rows["serve"]["message"].startswith("NonPreemptibleOverQuota: ")
