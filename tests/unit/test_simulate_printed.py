"""What ``evenkeel simulate`` prints, on a terminal and off it."""

from rich.console import Console

from scheduler.simulate import report, schedule
from tests import make
from tests.screen import Screen
from tests.unit.test_simulate_what_if import answer, gpu_node, pod, refused, simulate, workload


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
    assert [line.split()[-2:] for line in lines[1:4]] == [["reason", "1"]] * 3
    said = " ".join(line.strip() for line in lines)
    assert said.count("Insufficient cpu: requested") == said.count("requested 90, ") == 1
    assert "(The figures are those of default/big-0.)" in said
    messages = {one["message"] for one in answer(objects=objects)["pods"]}
    assert len(messages) == 3


def test_off_a_terminal_each_pod_is_one_line_with_its_cards_by_index() -> None:
    uuid = "GPU-8f2c1c5e-1111-2222-3333-444444444444"
    cards = [make.card(uuid=f"{uuid}{i}", index=i) for i in range(8)]
    objects = [gpu_node("g", cards=cards), pod("p", gpu=8), pod("waits", gpu=9)]
    lines = simulate(objects=objects).stdout.splitlines()
    assert lines[0].split() == ["POD", "NODE", "CARDS", "OR", "REASON"]
    # The row had 430 columns.
    assert lines[1] == "default/p      g          cards 0, 1, 2, 3, 4, 5, 6, 7: 15360 MiB 100 %"
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


def test_a_terminal_has_a_line_for_each_pod_and_each_reason_once() -> None:
    objects = [gpu_node("g"), pod("p", gpu=1), *(pod(f"w{i}", gpu=2) for i in range(7))]
    out = Screen()
    screen = Console(file=out, force_terminal=True, width=80, color_system=None)
    report.show({"": schedule(objects)}, screen)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[:3] == ["POD         NODE", "default/p   g", "  card 0: 15360 MiB 100 %"]
    assert max(map(len, lines)) <= 80
    assert out.getvalue().count("Pending") == 1
    assert out.getvalue().count("had no fitting GPU") == 1
    assert "default/w3, default/w4 and 2 more" in " ".join(line.strip() for line in lines)


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
        lines = (result.stdout + result.stderr).split("\n")
        assert [line for line in lines if not line.isprintable()] == []
        assert r"default/px\x1b]0;PWNED\x07\n\u202e" in result.stdout
        assert r"Deployment default/dx\x1b]0;PWNED\x07\n\u202e" in result.stderr
    out = Screen()
    screen = Console(file=out, force_terminal=True, width=80, color_system=None)
    report.show({"": schedule(objects, with_nodes=True)}, screen)
    assert [line for line in out.getvalue().split("\n") if not line.isprintable()] == []
    said = refused("--strict", objects=objects)
    assert [line for line in said.split("\n") if not line.isprintable()] == []
    assert r"-: Deployment default/dx\x1b]0;PWNED\x07\n\u202e: spec.replicas: " in said
