"""``evenkeel plan``."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from scheduler import printing
from scheduler.cli import answering, options
from scheduler.errors import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from scheduler.kube.evict.successors import Came
    from scheduler.plan.command import Request
    from scheduler.plan.making import PlanAnswer
    from scheduler.state.pods import PodRecord

Output = Literal["table", "json", "yaml", "markdown"]
What = Literal["defrag"]


def plan(
    *,
    what: Annotated[
        What,
        typer.Argument(
            help="defrag: which running pods to move so that cards and nodes become whole, or waiting pods find room."
        ),
    ],
    file: options.ObjectFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    only_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="NAMESPACE/POD",
            help="Plan only what lets this waiting pod in, with its group if it has one.",
        ),
    ] = None,
    moves: Annotated[int, typer.Option(metavar="N", help="The most moves.")] = 10,
    min_run: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Move only pods that have run for so long, as 30m or 2h."
        ),
    ] = "10m",
    output: Annotated[Output, typer.Option("-o", "--output", help="Form of the answer.")] = "table",
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Carry the plan out: evict each pod, wait where its successor goes, and plan anew if that is elsewhere.",
        ),
    ] = False,
    wait: Annotated[
        str,
        typer.Option(metavar="TIME", help="With --apply: how long each move may take, as 5m."),
    ] = "5m",
    surge: Annotated[
        bool,
        typer.Option(
            "--surge",
            help="With --apply: have the successor ready before the pod goes, by one more replica, where the pod's Deployment allows that.",
        ),
    ] = False,
    config_file: options.ConfigFile = None,
) -> None:
    """Plan which running pods to move, what each move frees, and which waiting pods it lets in.

    Each move is tried on the scheduler's own engine, in order: a pod like the one
    that goes is placed where the scheduler puts it. No card and no node is broken
    on the way, so a plan that is stopped half-way leaves nothing worse than it was.
    Only pods move that a controller makes again, that have run for a while and that
    their disruption budgets let go. Nothing is moved without --apply.

    Exit codes: 0 answered, also if there is nothing to move; 1 with --apply, a move
    came to no end, and the rest of the plan was left; 2 an argument, a file
    or the cluster cannot be read; 3 answered, but objects of files have mistakes
    and were left out.
    """
    from scheduler.plan import command, markdown, report  # noqa: PLC0415 - numba costs half a second

    del what
    if apply and output != "table":
        options.refuse(
            "--apply: cannot be combined with --output; what is done is printed in lines"
        )
    if surge and not apply:
        options.refuse("--surge: needs --apply, which moves pods")
    if surge:
        _mend_moves(kubeconfig, context)
    request = command.Request(
        config=options.read_config(config_file),
        files=file or (),
        only_for=only_for,
        most=moves,
        min_run=min_run,
        now=int(time.time()),
        applies=apply,
        wait=wait,
    )
    answer = answering.read_and_answer(
        file or (),
        kubeconfig,
        context,
        partial(command.check_request, request),
        partial(command.plan_defrag, request),
        request.config.config_maps,
    )

    def show() -> None:
        if output == "markdown":
            typer.echo(markdown.write_comment(answer.printed), nl=False)
        else:
            report.print_plan(answer.printed, printing.make_console())

    if not apply:
        answering.print_answer(answer, output, show)
    show()
    _carry_out(request, answer, kubeconfig, context, is_surge=surge)


def _mend_moves(kubeconfig: str | None, context: str | None) -> None:
    """Put right what an earlier command left that ended amid a move."""
    from scheduler.errors import ApiError, BadInput  # noqa: PLC0415 - as above
    from scheduler.kube import client  # noqa: PLC0415 - as above
    from scheduler.kube.evict.surge import leftovers  # noqa: PLC0415 - as above

    async def mend() -> list[str]:
        api = client.ApiClient(client.load_access(kubeconfig, context))
        try:
            return await leftovers.mend_moves(api)
        finally:
            await api.close()

    try:
        for text in asyncio.run(mend()):
            typer.echo(make_visible(text))
    except (ApiError, BadInput) as error:
        options.refuse(f"--surge: {error}")


def _carry_out(
    request: Request,
    answer: PlanAnswer,
    kubeconfig: str | None,
    context: str | None,
    *,
    is_surge: bool,
) -> NoReturn:
    """Carry a plan out, say what becomes of each move, and end the command."""
    from scheduler.api.groups.readers.reading import parse_seconds  # noqa: PLC0415 - as above
    from scheduler.kube import client  # noqa: PLC0415 - as above
    from scheduler.kube.evict import moves  # noqa: PLC0415 - as above
    from scheduler.kube.evict.successors import Order  # noqa: PLC0415 - as above
    from scheduler.plan import apply, command  # noqa: PLC0415 - as above

    access = client.load_access(kubeconfig, context)
    seconds = parse_seconds(request.wait, "--wait")

    async def move(pod: PodRecord, owner: str, check: Callable[[Came], bool] | None) -> Came:
        api = client.ApiClient(access)
        order = Order(owner, seconds, is_planned=check if is_surge else None)
        try:
            return await moves.move_pod(api, pod, order)
        finally:
            await api.close()

    def plan_again(most: int) -> PlanAnswer:
        now = replace(request, most=most, now=int(time.time()))
        return answering.read_and_answer(
            (), kubeconfig, context, lambda: None, partial(command.plan_defrag, now), now.config.config_maps
        )  # fmt: skip

    code = apply.apply_plan(
        answer,
        lambda pod, owner, check: asyncio.run(move(pod, owner, check)),
        plan_again,
        lambda text: typer.echo(make_visible(text)),
        request.most,
    )
    for text in answer.complaints:
        printing.complain(text)
    raise typer.Exit(code or answer.code)
