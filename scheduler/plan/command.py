"""``evenkeel plan`` without its flags: reads the objects, and has the plan made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from scheduler.api.groups.readers.reading import parse_seconds
from scheduler.config import Config
from scheduler.errors import BadInput
from scheduler.plan.making import PlanAnswer, Wish, make_plan
from scheduler.progress import Tell
from scheduler.simulate.reading.gathering import Live, gather_objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel plan`` as they were typed, except for the cluster's.

    Attributes:
        only_for: the waiting pod that the plan is for, as ``NAMESPACE/NAME``; None for a plan for all.
        most: the most moves.
        min_run: for how long a pod must have run, as ``30m``.
        now: the time, in seconds since 1970; of files their own time counts.
        applies: carry the plan out.
        wait: how long each move may take.
    """

    config: Config
    files: Sequence[str] = ()
    only_for: str | None = None
    most: int = 10
    min_run: str = "10m"
    now: int = 0
    applies: bool = False
    wait: str = "5m"


def check_request(request: Request) -> None:
    """Refuse arguments that are known to be wrong before anything is read.

    Raises:
        BadInput: an argument is wrong; names it and says what is allowed.
    """
    if request.most < 1:
        raise BadInput("--moves", "must be at least 1")
    parse_seconds(request.min_run, "--min-run")
    parse_seconds(request.wait, "--wait")
    if request.applies and request.files:
        raise BadInput("--apply", "needs a cluster: pods of files cannot be moved")
    wanted = request.only_for
    if wanted is not None and (wanted.count("/") != 1 or not all(wanted.split("/"))):
        raise BadInput("--for", f'"{wanted}" is not a pod: write NAMESPACE/POD')


def plan_defrag(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> PlanAnswer:
    """Read the objects, and plan which running pods to move.

    Raises:
        BadInput: an argument or a file is wrong, or the pod that the plan is for does not wait for room.
    """
    gathered = gather_objects(request.files, live or Live(), stdin, tell, command="plan defrag")
    wish = Wish(
        only_for=request.only_for,
        most=request.most,
        run_seconds=parse_seconds(request.min_run, "--min-run"),
        # Of files their own time counts.
        now=float(request.now) if live is not None else None,
    )
    unlisted = live.unlisted if live is not None else None
    return make_plan(gathered, request.config, wish, unlisted, tell)
