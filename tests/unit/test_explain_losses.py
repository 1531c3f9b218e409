"""What ``evenkeel explain`` tells of what a pod would lose, and why one node comes before another."""

import pytest

from tests.unit.test_explain import answer, on, said, sentences
from tests.unit.test_simulate_what_if import gpu_node, node, pod


def test_what_a_pod_would_lose_is_told_term_by_term_and_why_the_first_comes_first() -> None:
    objects = [node("a"), node("b"), on("q", "b", cpu=5, memory="20Gi"), pod("p", memory="4Gi")]
    found = answer("pod", "default/p", objects=objects)
    assert [one["node"] for one in found["best"]] == ["b", "a"]
    b, a = (one["loss"] for one in found["best"])
    assert b["unit"] == "thousandths of a node"
    assert a["terms"]["places for typical pods"] > b["terms"]["places for typical pods"]
    assert a["total"] == pytest.approx(sum(a["terms"].values()), abs=0.01)
    assert a["places"][0]["text"] == "4 cpu, 16Gi memory"
    lines = said("pod", "default/p", objects=objects)
    at = lines.index(
        "What placing the pod there would lose, in thousandths of an average empty node"
    )
    assert lines[at + 1].startswith(f"  b: {b['total']:,.1f} = places for typical pods ")
    apart = found["best"][0]["total"] - found["best"][1]["total"]
    assert f"  b comes before a by {apart:.6g} points: keel {apart:+.6g}." in lines
    empty = said("pod", "default/p", objects=[node("a"), node("b"), pod("p")])
    assert "  a and b score alike: the first by name comes first." in empty
    idle = on("idle", "a", cpu=0)
    alike = said("pod", "default/p", objects=[node("a"), node("b"), idle, pod("p")])
    spread = "the one that is less in use comes first (objective spread)"
    assert f" b and a score alike: {spread}." in sentences(alike)
    packed = pod("p", annotations={"scheduling.evenkeel.dev/objective": "pack"})
    idles = [on(f"idle-{i}", "a", cpu=0) for i in range(3)]
    told = "\n".join(said("pod", "default/p", objects=[node("a"), node("b"), *idles, packed]))
    assert "(objective pack)" in told
    assert "what is left, to pack" in told
    other = pod("p", annotations={"scheduling.evenkeel.dev/mode": "most-allocated"})
    found = answer("pod", "default/p", objects=[node("a"), other])
    assert found["best"][0]["loss"] is None
    assert "Loss by placing" not in "\n".join(said("pod", "default/p", objects=[node("a"), other]))


def test_what_a_share_of_a_card_would_lose_is_told_in_milli_gpu() -> None:
    objects = [gpu_node("g", cards=2), pod("p", gpu=1, gpumem=4000)]
    loss = answer("pod", "default/p", objects=objects)["best"][0]["loss"]
    assert (loss["unit"], loss["places"]) == ("milli-GPU", [])
    assert {"splitting a card", "left over on the card"} <= loss["terms"].keys()
    assert "What placing the pod there would lose, in milli-GPU" in said(
        "pod", "default/p", objects=objects
    )
