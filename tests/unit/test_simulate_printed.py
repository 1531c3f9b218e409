"""What ``evenkeel simulate`` prints, on a terminal and off it."""

import io
from typing import Any

from rich.console import Console

from scheduler import printing
from scheduler.simulate import report, schedule
from tests import make
from tests.prose import unwrapped
from tests.screen import Screen
from tests.unit.test_simulate_what_if import (
    answer,
    gpu_node,
    node,
    pod,
    refused,
    simulate,
    workload,
)

Json = dict[str, Any]


def test_off_a_terminal_each_reason_is_said_once_in_lines_of_80_columns() -> None:
    waiting = [pod(f"w{i}", gpu=2, gpumem=i + 1) for i in range(7)]
    lines = simulate(objects=[gpu_node("g"), *waiting, pod("x", cpu=999)]).stdout.splitlines()
    assert lines[1:8] == [f"default/w{i}  (pending)  reason 1" for i in range(7)]
    assert lines[8:11] == [
        "default/x   (pending)  reason 2", "",
        "Reason 1: default/w0, default/w1, default/w2, default/w3, default/w4 and 2 more",
    ]  # fmt: skip
    end = lines.index("Reason 2: default/x")
    said = " ".join(line.strip() for line in lines[11:end])
    assert said.startswith("0/1 nodes are available: ")
    # The reason was one line.
    assert len(said) > 80
    assert all(line.startswith("  ") for line in lines[11 : end - 1])
    assert max(map(len, lines)) <= 80


def test_a_reason_whose_figures_differ_is_one_with_those_of_its_first_pod() -> None:
    objects = [gpu_node("g"), *(pod(f"big-{i}", cpu=90 + i) for i in range(3))]
    lines = simulate(objects=objects).stdout.splitlines()
    assert lines[1].split("  ") == ["default/big-… (3 pods)", "(pending)", "reason 1"]
    said = " ".join(line.strip() for line in lines)
    assert said.count("Insufficient cpu: requested") == said.count("requested 90, ") == 1
    assert "(The figures are those of default/big-0.)" in said
    messages = {one["message"] for one in answer(objects=objects)["pods"]}
    assert len(messages) == 3


def test_a_pod_is_one_line_with_its_cards_by_index_and_wide_with_their_ids() -> None:
    uuid = "GPU-8f2c1c5e-1111-2222-3333-444444444444"
    cards = [make.card(uuid=f"{uuid}{i}", index=i) for i in range(8)]
    objects = [gpu_node("g", cards=cards), pod("p", gpu=8), pod("waits", gpu=9)]
    lines = simulate(objects=objects).stdout.splitlines()
    assert lines[0].split() == ["POD", "NODE", "CARDS", "OR", "REASON"]
    # The row had 430 columns.
    assert lines[1] == "default/p      g          cards 0-7: 15360 MiB 100 %"
    wide = simulate("-o", "wide", objects=objects).stdout.splitlines()
    assert all(f"card {i} {uuid}{i} 15360 MiB 100 %" in wide[1] for i in range(8))
    assert wide[2:] == lines[2:]
    assert lines[2:5] == ["default/waits  (pending)  reason 1", "", "Reason 1: default/waits"]
    assert lines[5].startswith("  0/1 nodes are available: ")
    assert lines[-3].endswith(".")
    assert lines[-2:] == ["", "1 of 2 pods scheduled on 1 node"]


def test_jobs_without_pods_are_counted_and_some_are_named() -> None:
    over = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    objects = [
        gpu_node("g"), workload("Job", "s", suspend=True), workload("CronJob", "c", suspend=True),
        *(workload("Job", f"j{i}") | over for i in range(7)),
    ]  # fmt: skip
    assert simulate(objects=objects).stdout.splitlines()[-3:] == [
        "suspended, so without pods: 1 CronJob (default/c), 1 Job (default/s)",
        "finished, so without pods: 7 Job (default/j0, default/j1, default/j2,",
        "default/j3, default/j4 and 2 more)",
    ]


def on_a_terminal(objects: list[Json], width: int = 80) -> str:
    out = Screen()
    screen = Console(file=out, force_terminal=True, width=width, color_system=None)
    report.print_report({"": schedule(objects)}, screen)
    return out.getvalue()


def test_a_terminal_and_a_pipe_show_the_same() -> None:
    objects = [gpu_node("g"), pod("p", gpu=1), *(pod(f"w-{i}", gpu=2) for i in range(7))]
    lines = on_a_terminal(objects).splitlines()
    assert lines[:3] == [
        "POD                   NODE       CARDS OR REASON",
        "default/p             g          card 0: 15360 MiB 100 %",
        "default/w-… (7 pods)  (pending)  reason 1",
    ]
    assert lines == simulate(objects=objects).stdout.splitlines()
    assert lines.count("Reason 1: default/w-… (7 pods)") == 1


def test_a_narrow_terminal_has_lines_of_its_width() -> None:
    objects = [gpu_node("g"), pod("p", gpu=1), pod("a-pod-with-a-long-name", gpu=2)]
    lines = on_a_terminal(objects, width=44).splitlines()
    assert max(map(len, lines)) <= 44
    assert lines[2:4] == [
        "default/p                       g", "    card 0: 15360 MiB 100 %",
    ]  # fmt: skip


def large(nodes: int) -> list[Json]:
    """Nodes of eight cards, and pods: whole nodes, a Deployment that fits and one that does not."""
    long = "cluster-prod-gpu-a100-pool-2-5f3b1c9a-"
    gpus = [
        gpu_node(f"{long}{i:04}", cpu=64, cards=make.cards(count=8, prefix=f"{long}{i:04}-GPU"))
        for i in range(nodes)
    ]
    train = [pod(f"train-llm-70b-worker-{i}", namespace="ml-platform", gpu=8) for i in range(nodes)]
    return [
        *gpus, node("cpu-1", cpu=64), *train,
        workload("Deployment", "web", namespace="shop", replicas=90),
        workload("Deployment", "x" * 60, namespace="y" * 60, replicas=1),
        *(pod(f"waits-{i}", cpu=90 + i) for i in range(40)),
    ]  # fmt: skip


def test_no_line_of_many_nodes_is_wider_than_80_columns_and_alike_pods_share_lines() -> None:
    objects = large(20)
    found = simulate(objects=objects)
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 50
    assert lines == on_a_terminal(objects).splitlines()
    # Seven of the 20 have lines of their own, with what does not fit beside a name below it.
    assert [line for line in lines if line.startswith("    cards 0-7: 15360 MiB 100 %")] == [
        "    cards 0-7: 15360 MiB 100 %"
    ] * 7
    assert "ml-platform/train-llm-70b-worker-… (13 more)  13 nodes" in lines
    assert "    8 cards: 15360 MiB 100 %" in lines
    shop = [line for line in lines if line.startswith("shop/web-… (")]
    assert sum(int(line.partition("(")[2].split()[0]) for line in shop) == 90
    assert "default/waits-… (40 pods)             (pending)                reason 1" in lines
    # A name that no line has room for keeps its beginning and its end.
    (long,) = [line for line in lines if line.startswith("yyyy")]
    assert (len(long.split()[0]), "…" in long) == (80, True)
    wide = simulate("-o", "wide", objects=objects).stdout.splitlines()
    pods = [line for line in wide if line.startswith("ml-platform/train-llm-70b-worker-1 ")]
    assert len(pods) == 1
    assert all(f"card {i} cluster-prod" in pods[0] for i in range(8))
    assert any(line.startswith(f"{'y' * 60}/{'x' * 50}") for line in wide)


def test_what_is_written_to_standard_error_has_80_columns_and_commands_are_whole() -> None:
    objects = [
        gpu_node("g"),
        pod("p", requests={"memory": "x" * 30}),
        workload("Job", nodeSelector=5),
    ]
    objects[-1]["spec"]["template"]["spec"]["priorityClassName"] = "a-class-that-is-not-there"
    result = simulate(objects=objects)
    assert result.exit_code == 3
    assert max(map(len, result.stderr.splitlines())) <= 80
    assert "\n  " in result.stderr
    out = io.StringIO()
    printing.complain(f"x: {'word ' * 12}: use `helm template DIR | evenkeel simulate -f -`", out)
    assert "\n  `helm template DIR | evenkeel simulate -f -`\n" in out.getvalue()


def test_what_a_terminal_would_obey_is_spelt_out_in_all_that_is_printed() -> None:
    evil = "x\x1b]0;PWNED\x07\n\u202e"
    odd = {"apiVersion": f"{evil}/v1", "kind": f"Odd{evil}", "metadata": {"name": "o"}}
    objects = [
        gpu_node(f"n{evil}"), pod(f"p{evil}", gpu=1), pod(f"q{evil}", gpu=9), pod(f"r{evil}", memory=f"1{evil}"), odd,
        odd | {"spec": {"containers": [{}]}}, workload("Job", suspend=True, name=f"j{evil}"),
        workload("Deployment", f"d{evil}", replicas=evil),
    ]  # fmt: skip
    for arguments in ((), ("--explain",), ("--mode", "keel,fgd")):
        result = simulate(*arguments, objects=objects)
        assert result.exit_code == 3, result.output
        lines = (result.stdout + unwrapped(result.stderr)).split("\n")
        assert [line for line in lines if not line.isprintable()] == []
        assert r"default/px\x1b]0;PWNED\x07\n\u202e" in result.stdout
        assert r"Deployment default/dx\x1b]0;PWNED\x07\n\u202e" in unwrapped(result.stderr)
    out = Screen()
    screen = Console(file=out, force_terminal=True, width=80, color_system=None)
    report.print_report({"": schedule(objects, with_nodes=True)}, screen)
    assert [line for line in out.getvalue().split("\n") if not line.isprintable()] == []
    said = refused("--strict", objects=objects)
    assert [line for line in said.split("\n") if not line.isprintable()] == []
    assert r"-: Deployment default/dx\x1b]0;PWNED\x07\n\u202e: spec.replicas: " in said
