"""Pods of very many containers, of which each may ask all cards of a node: the same figures, in arrays."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import gpus, hami, wire
from scheduler.state import claims
from scheduler.state.cards import CardTable
from scheduler.state.cluster import Cluster
from tests import make
from tests.operator import attacks

MEMORY = {"GPU-a": 1000, "GPU-b": 24576, "GPU-c": 999}
asks = st.builds(
    gpus.ContainerAsk,
    st.sampled_from(gpus.Kind),
    st.sampled_from([0, 1, 2, 9, 10**30]),
    st.sampled_from([0, 1, 700]),
    st.sampled_from([0, 30, 100]),
    st.sampled_from([0, 10, 100]),
)
uses = st.builds(
    hami.CardUse,
    st.sampled_from([*MEMORY, "GPU-c[0-1]", "GPU-gone", "elsewhere"]),
    st.sampled_from([0, 5, 2000]),
    st.sampled_from([0, 10, 100]),
)
containers = st.lists(st.tuples(asks, st.lists(uses, max_size=4).map(tuple)), max_size=6)


def cards(last: str = "hami-core") -> tuple[dict[str, int], CardTable]:
    table = CardTable()
    listed = [
        make.card(uuid=uuid, index=i, mib=mib, mode=last if uuid == "GPU-c" else "hami-core")
        for i, (uuid, mib) in enumerate(MEMORY.items())
    ]
    start = table.place(hami.decode_register(json.dumps(listed)))
    return {uuid: d for d, uuid in enumerate(MEMORY, start)} | {"GPU-gone": claims._GONE}, table


@given(pod=containers, last=st.sampled_from(["hami-core", "mig"]))
def test_arrays_give_the_figures_that_one_container_after_another_gives(
    pod: list[tuple[gpus.ContainerAsk, tuple[hami.CardUse, ...]]], last: str
) -> None:
    most = tuple(ask for ask, _ in pod)
    claim = claims.allowed(tuple(told for _, told in pod), most, most)
    rows, table = cards(last)
    singly = claims.charges(claim, most, rows, table.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_MANY", 1)
        assert claims.charges(claim, most, rows, table.columns) == singly


def test_thousands_of_containers_are_not_charged_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, table = cards()
    monkeypatch.setattr(claims, "_holding", lambda *_: pytest.fail("one by one"))
    ask = gpus.ContainerAsk(gpus.Kind.APP, 30_000, 1, 0, 1)
    told = ((hami.CardUse("GPU-b", 1, 1),), *((),) * 8000)
    assert claims.charges(told, (ask,) * 8001, rows, table.columns) == {
        rows[uuid]: (8001, 8001, 8001) for uuid in MEMORY
    }


@pytest.mark.parametrize("n_cards", [1, 30_000, 10**30])
def test_a_container_holds_no_more_cards_than_there_are(n_cards: int) -> None:
    rows, table = cards()
    ask = gpus.ContainerAsk(gpus.Kind.APP, n_cards, 1, 0, 1)
    held = claims.charges((), (ask,), rows, table.columns)
    assert len(held) == min(n_cards, len(MEMORY))


def test_a_pod_that_claims_thousands_of_cards_holds_what_it_asks_and_is_told_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hami, "_use", lambda *_: pytest.fail("a record was read"))
    cluster = Cluster()
    cluster.see_node(make.hami_node(name="gpu-00", cards=[make.card(uuid="GPU-a")]))
    (manifest, *_) = attacks.named("tenant", 0.1)
    pod = cluster.see_pod(msgspec.convert(manifest, wire.Pod))
    assert pod is not None
    assert cluster.held(pod, 0) == {cluster._cards_on[0]["GPU-a"]: (0, 1, 1)}
    assert "has more than 1000 cards, the most that is read" in cluster.problem_of(pod)
    assert not pod.claim
