"""Tolerations by comparison: flavors know them, as Kueue does, and nodes do not, as kube-scheduler without a feature gate."""

import pytest

from scheduler.api.pods.tolerations import tolerates


@pytest.mark.parametrize(
    ("operator", "value", "taint", "is_met"),
    [
        ("Lt", "9", "3", True),
        ("Lt", "9", "9", False),
        ("Gt", "9", "10", True),
        ("Gt", "9", "9", False),
        ("Gt", "-5", "-4", True),
        ("Gt", "9", "", False),
        ("Gt", "x", "10", False),
        ("Equal", "9", "9", True),
        ("Like", "9", "9", False),
    ],
)
def test_lt_and_gt_compare_whole_numbers_where_they_are_known(
    operator: str, value: str, taint: str, *, is_met: bool
) -> None:
    tolerations = [("k", operator, value, "")]
    assert tolerates(tolerations, ("k", taint, "NoSchedule"), compares=True) == is_met
    assert not tolerates(tolerations, ("other", taint, "NoSchedule"), compares=True)
    is_known = operator == "Equal"
    assert tolerates(tolerations, ("k", taint, "NoSchedule")) == (is_met and is_known)
