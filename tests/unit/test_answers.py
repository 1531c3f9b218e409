"""What the API server's answers mean, said in one place."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import scheduler.kube
from scheduler.errors import ApiError
from scheduler.kube import answers

Judge = Callable[[Exception], bool]
ROOM = Path(scheduler.kube.__file__).parent
MEANINGS: dict[Judge, set[int]] = {
    answers.is_not_found: {404},
    answers.is_conflict: {409},
    answers.is_expired: {410},
    answers.is_too_large: {413},
    answers.is_invalid: {422},
    answers.is_forbidden: {403},
    answers.is_refused: {401, 403},
    answers.is_unknown: {0, 500, 502, 503, 504},
    answers.is_transient: {0, 429, 500, 502, 503, 504},
}
STATUSES = (0, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504)


@pytest.mark.parametrize(
    ("judge", "statuses"), MEANINGS.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_a_meaning_is_that_of_its_statuses_and_of_no_others(
    judge: Judge, statuses: set[int]
) -> None:
    assert {one for one in STATUSES if judge(ApiError(one, "", ""))} == statuses
    assert not judge(RuntimeError("not of the API server's"))


@pytest.mark.parametrize(
    ("status", "fails"), [(200, False), (201, False), (302, True), (400, True), (503, True)]
)
def test_a_failure_begins_at_400(status: int, *, fails: bool) -> None:
    assert answers.is_failure(status) == fails


def test_etcds_refusal_of_a_large_request_is_known_by_its_words() -> None:
    assert answers.is_too_large(ApiError(500, "", "etcdserver: request is too large"))


def test_an_error_has_the_words_of_the_status_object_or_the_beginning_of_the_page() -> None:
    told = answers.make_error(409, b'{"kind":"Status","reason":"Conflict","message":"changed"}')
    assert str(told) == "409 Conflict: changed"
    page = answers.make_error(502, b"<html>" + b"x" * 5000)
    assert page.status == 502
    assert page.message == "<html>" + "x" * 194


def test_a_list_without_end_is_told_as_an_expired_one() -> None:
    error = answers.make_expired_error("GET /x: too fast")
    assert answers.is_expired(error)
    assert str(error) == "410 Expired: GET /x: too fast"


def test_a_status_is_compared_in_no_other_module() -> None:
    found = {
        f"{path.relative_to(ROOM)}:{node.lineno}"
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and {"status", "code"} & _attributes(node)
    }
    # These compare the statuses of conditions, and know no answers.
    of_conditions = {"queues/conditions.py", "jobs/known.py"}
    for name in of_conditions:
        assert "ApiError" not in (ROOM / name).read_text(encoding="utf-8")
    assert {place.partition(":")[0] for place in found} == {"answers.py", *of_conditions}


def _attributes(compared: ast.Compare) -> set[str]:
    sides = (compared.left, *compared.comparators)
    return {one.attr for one in sides if isinstance(one, ast.Attribute)}
