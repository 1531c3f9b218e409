"""Counters and histograms: what is added comes out, and labels stay within bounds."""

from scheduler.kube.report.metrics.families import CountedFamily, Family, FamilyKind, Observed

_COUNTER = Family("things", FamilyKind.COUNTER, "Things.", ("a", "b"))
_SECONDS = Family("wait_seconds", FamilyKind.HISTOGRAM, "Waits.", ("a",), (0.1, 1.0))


def test_many_observations_at_once_are_as_many_one_by_one() -> None:
    at_once, one_by_one = Observed(_SECONDS), Observed(_SECONDS)
    for figure, n in ((0.05, 3), (0.1, 2), (0.5, 4), (7.0, 1)):
        at_once.add(figure, "x", n=n)
        for _ in range(n):
            one_by_one.add(figure, "x")
    told, other = ({(s.name, *s.labels.values()): s.value for s in made.collect().samples}
                   for made in (at_once, one_by_one))  # fmt: skip
    total = told.pop(("wait_seconds_sum", "x"))
    assert abs(total - other.pop(("wait_seconds_sum", "x"))) < 1e-9
    # A bound counts what is equal to it.
    assert told == other == {
        ("wait_seconds_bucket", "x", "0.1"): 5,
        ("wait_seconds_bucket", "x", "1.0"): 9,
        ("wait_seconds_bucket", "x", "+Inf"): 10,
        ("wait_seconds_count", "x"): 10,
    }  # fmt: skip


def test_label_values_beyond_the_most_are_counted_together() -> None:
    counted = CountedFamily(_COUNTER, [("first", "")], most=2)
    for i in range(50):
        counted.add(f"a{i}", "b")
    counted.add("first", "")
    found = {tuple(one.labels.values()): one.value for one in counted.collect().samples}
    assert found == {("first", ""): 1, ("a0", "b"): 1, ("other", "other"): 49}
