"""What ``evenkeel explain`` says of pods of which several containers request cards."""

from scheduler.api import names
from tests import make
from tests.unit.test_explain import answer, said, sentences
from tests.unit.test_explain_printed import too_wide
from tests.unit.test_simulate_what_if import gpu_node


def test_of_several_gpu_containers_each_is_told_what_fits_it_and_what_does_not_fit_together() -> (
    None
):
    both = make.pod(
        name="both",
        containers=[
            make.container(name="train", gpu=1, gpumem=12000),
            make.container(name="embed", gpu=1, gpumem=4000),
        ],
    )
    objects = [gpu_node("g", cards=1), {"apiVersion": "v1", "kind": "Pod", **make.raw(both)}]
    found = answer("pod", "both", objects=objects)
    assert found["nearest"]["containers"] == [
        {"names": [name], "cardsRequested": 1, "wouldDo": 1, "refusals": [None]}
        for name in ("train", "embed")
    ]
    assert found["nearest"]["together"] == {
        "container": "embed", "after": ["train"], "cardsRequested": 1, "wouldDo": 0
    }  # fmt: skip
    told = sentences(said("pod", "both", objects=objects))
    for text in (
        "CardInsufficientMemory on 1 GPU: the containers do not fit together: once container train is placed, the largest free for container embed is 3360 on g.",
        (
            "container train: 1 of 1 card would fit, 1 is requested container embed: 1 of 1 card would fit, 1 is requested "
            "They do not fit together: once container train is placed, 0 of 1 card would fit container embed."
        ),
        "card 0 would fit train and embed: 15360 of 15360 MiB free",
        "1. request at most 11360 nvidia.com/gpumem in container train instead of 12000: it fits on g",
        "2. request at most 3360 nvidia.com/gpumem in container embed instead of 4000: it fits on g",
    ):
        assert text in told
    both.spec.containers[0].resources.limits[names.GPU_MEMORY] = 16000  # type: ignore[union-attr,index]
    objects[1] |= make.raw(both)
    told = sentences(said("pod", "both", objects=objects))
    assert "container train: 0 of 1 card would fit, 1 is requested" in told
    assert "card 0 CardInsufficientMemory for train, would fit embed: 15360 of 15360" in told
    assert "together" not in told


def test_of_many_unlike_containers_the_first_are_told_one_by_one() -> None:
    many = make.pod(
        name="many", containers=[make.container(name=f"c{i}", gpu=1, gpumem=9000 + i) for i in range(12)]
    )  # fmt: skip
    objects = [gpu_node("g", cards=1), {"apiVersion": "v1", "kind": "Pod", **make.raw(many)}]
    lines = said("pod", "many", objects=objects)
    assert "  container c7: 1 of 1 card would fit, 1 is requested" in lines
    assert not any(line.startswith("  container c8:") for line in lines)
    assert "  and 4 other requests of containers" in lines
    assert too_wide(lines, 80) == []
