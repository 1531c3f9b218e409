"""Metrics of the process that moves pods."""

from scheduler.kube.report.metrics.rebalancing import RebalanceMetrics

_GAUGE = "evenkeel_rebalance_planned_moves"


async def _list_policies(metrics: RebalanceMetrics) -> dict[str, float]:
    _, parts = await metrics.make_text("text/plain")
    lines = b"".join([part async for part in parts]).decode().splitlines()
    found = (line.split(" ") for line in lines if line.startswith(f"{_GAUGE}{{"))
    return {name.split('"')[1]: float(figure) for name, figure in found}


async def test_the_figures_of_a_policy_end_with_it() -> None:
    there = ["night", "day"]
    metrics = RebalanceMetrics(lambda: there)
    metrics.note_plan("night", 3, 10, 5.0)
    metrics.note_plan("day", 2, 10, 5.0)
    assert await _list_policies(metrics) == {"night": 3.0, "day": 2.0}
    there.remove("night")
    assert await _list_policies(metrics) == {"day": 2.0}
    # A policy of the same name may come again, and its plan may be late.
    metrics.note_plan("night", 1, 10, 6.0)
    there.append("night")
    assert await _list_policies(metrics) == {"night": 1.0, "day": 2.0}
