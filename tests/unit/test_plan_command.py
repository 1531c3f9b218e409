"""What `evenkeel plan defrag` prints, and what it refuses."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from scheduler import cli
from scheduler.documents import writing
from tests.docs import examples
from tests.prose import unwrapped
from tests.unit.test_defrag import LARGE, MIB, NODES, SMALL, moved, share, waiting
from tests.unit.test_simulate_what_if import node

Json = dict[str, Any]


def run(*arguments: str, objects: list[Json]) -> Any:
    stdin = writing.dump_all(objects)
    return CliRunner().invoke(cli.app, ["plan", "defrag", "-f", "-", *arguments], input=stdin)


def test_what_is_printed_when_there_is_nothing_to_move() -> None:
    later = waiting("later")  # the time of files is the last time in them
    alone = share("alone", "a-0", kind="")
    done = run(objects=[*NODES, alone, later])
    assert done.exit_code == 0, done.output
    text = (
        "Nothing to move: no running pod may be moved (1 pod that no controller would make again)."
    )
    assert unwrapped(done.stdout).strip() == text
    done = run(objects=[*NODES])
    assert unwrapped(done.stdout).strip() == "Nothing to move: no pod runs that could be moved."
    done = run(objects=[*NODES, SMALL, later])
    assert "make a card or a node whole, or let a waiting pod in." in unwrapped(done.stdout)
    wide = waiting("wide", gpu=3, gpumem=MIB)
    done = run("--for", "default/wide", objects=[*NODES, SMALL, LARGE, wide])
    text = "Nothing to move for pod default/wide: no moves that were tried let it in."
    assert unwrapped(done.stdout).startswith(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--for", "wide"), '--for: "wide" is not a pod: write NAMESPACE/POD'),
        (("--for", "default/none"), "--for: there is no pod default/none that is not finished"),
        (("--for", "default/small"), "--for: pod default/small has room without a move, on a"),
        (("--for", "default/gated"), "--for: pod default/gated is in no queue; `evenkeel explain pod default/gated` says why"),
        (("--for", "default/other"), "--for: pod default/other names another scheduler, which places it"),
        (("--moves", "0"), "--moves: must be at least 1"),
        (("--min-run", "soon"), "--min-run: 'soon' is not a duration: write seconds (5400) or hours, minutes and seconds (1h30m)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments: tuple[str, ...], said: str) -> None:
    gated = waiting("gated", spec={"schedulingGates": [{"name": "x"}]})
    other = waiting("other", scheduler_name="default-scheduler")
    done = run(*arguments, objects=[*NODES, SMALL, LARGE, gated, other])
    assert (done.exit_code, done.stdout) == (2, "")
    assert unwrapped(done.stderr).strip() == said


def test_a_plan_is_printed_for_a_ticket_and_for_programs() -> None:
    of = ["plan", "defrag", "-f", str(examples.NODES), "-f", str(examples.FOLDER / "defragment.yaml")]  # fmt: skip
    text = CliRunner().invoke(cli.app, [*of, "-o", "markdown"]).stdout
    assert "| 1.1 | `default/chat-7d9c-p8w4m` | `shared-2 card 0` | `shared-1 card 0` |" in text
    found = json.loads(CliRunner().invoke(cli.app, [*of, "-o", "json"]).stdout)
    assert [name for name, *_ in moved(found)] == ["chat-7d9c-p8w4m", "search-5b8f-9dqlc"]
    assert found["complete"]


def test_malformed_objects_are_left_out_and_named() -> None:
    done = run(objects=[*NODES, SMALL, node("bad", cpu="x")])
    assert done.exit_code == 3
    assert "Node bad" in done.stderr
