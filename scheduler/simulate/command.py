"""``evenkeel simulate`` without its flags: reads the objects, places the pods, and returns the exit code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TextIO

from scheduler.api.placement import MODES, Mode
from scheduler.config import Config
from scheduler.errors import BadInput, make_visible
from scheduler.printing import count_nouns
from scheduler.progress import Tell
from scheduler.simulate import alike, run
from scheduler.simulate.changes import kai_quotas, quotas, scale, what_if
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading import files, kinds
from scheduler.simulate.reading.gathering import (
    CLUSTER,
    Gathered,
    Live,
    Origin,
    add_objects,
    gather_objects,
    is_running,
    name_origins,
)
from scheduler.simulate.reading.inventory import InputProblem
from scheduler.simulate.situation import Situation, prepare
from scheduler.simulate.workloads.contract import Idle
from scheduler.simulate.workloads.daemons import explain_unsuited

Json = dict[str, Any]
OK, PENDING, REFUSED, MISTAKES = range(4)
_TOLD_MAX = 20
_WITH_BASELINE = "placing pods with the queues of the baseline"
# The parts of a mistake, in the order in which they are printed.
_PARTS = ("file", "place", "object", "field", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel simulate`` as they were typed, except for the cluster's."""

    config: Config
    files: Sequence[str] = ()
    baseline: Sequence[str] = ()
    output: Literal["table", "wide", "json", "yaml", "markdown"] = "table"
    explain: bool = False
    only_ours: bool = False
    strict: bool = False
    fail_if_pending: bool = False
    without_nodes: Sequence[str] = ()
    cordon: Sequence[str] = ()
    drain: Sequence[str] = ()
    add_nodes: Sequence[str] = ()
    scale: Sequence[str] = ()
    modes: Sequence[str] = ()
    policies: Sequence[str] = ()
    now: int = 0

    @property
    def has_changes(self) -> bool:
        """Whether a change to the cluster is to be simulated."""
        removed = self.without_nodes or self.cordon or self.drain
        return bool(removed or self.add_nodes or self.scale or self.policies)


@dataclass(frozen=True, slots=True)
class SimulateAnswer:
    """The answer that is printed.

    Attributes:
        results: for each mode, under its name; for the configuration's own mode the name is empty.
        code: the exit code of the command.
    """

    results: dict[str, Json]
    code: int

    @property
    def printed(self) -> Json:
        """What ``-o json`` prints: the result, or ``{"modes": {mode: result}}`` where modes are compared."""
        if len(self.results) > 1:
            return {"modes": self.results}
        (result,) = self.results.values()
        return result

    @property
    def complaints(self) -> list[str]:
        """Mistakes and warnings, for standard error; each once, whatever the mode."""
        results = self.results.values()
        said = [
            ": ".join(filter(None, (one[part] for part in _PARTS)))
            for result in results
            for one in result["mistakes"]
        ]
        said += [f"warning: {text}" for result in results for text in result["warnings"]]
        return list(dict.fromkeys(map(make_visible, said)))


class Refused(BadInput):
    """Objects are refused for their mistakes; as text a line for each, and how many more there are."""

    def __init__(self, problems: Sequence[InputProblem], origins: Sequence[Origin]) -> None:
        """The mistakes of all objects, and where each object is from."""
        said = [make_visible(origins[one.position].prefix(str(one))) for one in problems]
        more = len(said) - _TOLD_MAX
        self.lines = [*said[:_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
        first = problems[0]
        super().__init__(origins[first.position].file, str(first))

    def __str__(self) -> str:
        return "\n".join(self.lines)


def check_request(request: Request) -> None:
    """Refuse arguments that are known to be wrong before anything is read.

    Raises:
        BadInput: an argument is wrong; names it and says what is allowed.
    """
    _read_modes(request.modes)
    if request.explain and request.output == "markdown":
        raise BadInput(
            "--explain",
            "lists every node, which is too long for -o markdown; use -o table, json or yaml",
        )
    for text in request.scale:
        scale.parse_scale(text)
    for text in request.drain:
        what_if.parse_labels(text)


def simulate(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> SimulateAnswer:
    """Read the objects, place the pods with each mode, and find the exit code.

    Raises:
        BadInput: an argument or a file is wrong; or, if strict, an object is.
    """
    gathered = gather_objects(request.files, live or Live(), stdin, tell, baseline=request.baseline)
    changes = _read_changes(request, gathered.origins, stdin)
    tell("making the pods of workloads")
    try:
        situation = prepare(
            gathered.objects,
            changes,
            strict=request.strict,
            unlisted=live.unlisted if live else None,
            remarks=[*gathered.remarks, *_warn_of_mixed_files(request, gathered)],
            earlier=gathered.earlier,
            own={i for i, origin in enumerate(gathered.origins) if origin.file in gathered.own},
        )
        question = run.Question(
            config=request.config,
            only_ours=request.only_ours,
            own=_find_own(situation, gathered),
            with_nodes=request.explain,
            now=request.now,
        )
        results = {
            mode or "": _place(situation, replace(question, mode=mode), gathered.origins, tell)
            for mode in _read_modes(request.modes)
        }
    except InputProblem as error:
        raise Refused([error, *error.others], gathered.origins) from error
    _compare_queues(gathered, changes, question, situation, results, tell)
    _mark_pods(request, situation, gathered, results.values())
    return SimulateAnswer(results, _find_code(request, results.values()))


def _compare_queues(
    gathered: Gathered,
    changes: Changes,
    question: run.Question,
    situation: Situation,
    results: Mapping[str, Json],
    tell: Tell,
) -> None:
    """Compare each result with that of the baseline's own queues, if one's own files have other queues.

    If they have none, what is changed otherwise is compared with what there is without these changes.
    """
    before, by = quotas.find_before(gathered), quotas.By.FILES
    if before is None and changes.moves_pods and quotas.has_queues(gathered):
        before, by = gathered, quotas.By.CHANGES
        changes = Changes(policies=changes.policies)
    for mode, result in results.items():
        result["queueChanges"] = result["kaiQueueChanges"] = None
        if before is not None:
            earlier = prepare(before.objects, changes, strict=False, earlier=before.earlier)
            own = _find_own(earlier, before)
            same = replace(question, mode=Mode(mode) if mode else None, own=own, with_nodes=False)
            found = run.place_pods(
                earlier, same, lambda done, total: tell(_WITH_BASELINE, done, total)
            )
            result["queueChanges"] = quotas.compare(found, result, by)
            result["kaiQueueChanges"] = kai_quotas.compare(
                kai_quotas.Moment(found, earlier.inventory.pods),
                kai_quotas.Moment(result, situation.inventory.pods),
                by,
            )


def _warn_of_mixed_files(request: Request, gathered: Gathered) -> Iterator[str]:
    """Warn if the request is about one's own pods, and one file holds both these pods and the cluster."""
    if not (request.only_ours or request.fail_if_pending):
        return
    if gathered.baseline or request.has_changes:
        return
    pairs = zip(gathered.origins, gathered.objects, strict=True)
    if running := next((origin.file for origin, body in pairs if is_running(body)), ""):
        file = "standard input" if running == "-" else running
        yield (
            f"{file} holds running pods, and no other file holds pods, so none is your own: if some are, "
            "give the cluster as it is by --baseline and your own objects by -f"
        )


def _find_own(situation: Situation, gathered: Gathered) -> frozenset[str]:
    """Find one's own pods: the question is about them, whichever scheduler they name."""
    inventory = situation.inventory
    uids = (pod.metadata.uid for pod in inventory.pods)
    return frozenset(
        uid for uid in uids if gathered.origins[inventory.positions[uid]].file in gathered.own
    )


def _mark_pods(
    request: Request, situation: Situation, gathered: Gathered, results: Iterable[Json]
) -> None:
    """Mark each pod with whose it is, and each pod and mistake with whether it counts; one's own pods come first.

    If files of one's own or a change are given beside a baseline, mistakes in the baseline and pods that wait there do
    not count. Mistakes in files of ``-f`` always count.
    """
    is_beside = bool(gathered.own) or request.has_changes
    of_others = gathered.baseline - set(request.files) if is_beside else frozenset()
    of_changes = situation.making.caused | situation.displaced.keys()
    unsuited = list(_list_unsuited(situation, gathered))
    for result in results:
        for one in result["mistakes"]:
            one["counts"] = one["file"] not in of_others
        for pod in result["pods"]:
            is_made = pod["uid"] in situation.making.made and pod["file"] not in gathered.baseline
            pod["own"] = pod["file"] in gathered.own
            pod["ofChange"] = pod["uid"] in of_changes
            pod["counts"] = not is_beside or pod["own"] or is_made or pod["ofChange"]
        result["pods"].sort(key=alike.read_rank)
        result["warnings"][:0] = _warn_of_ignored(request, gathered, result["pods"])
        result |= {
            "ownFiles": sorted(gathered.own),
            "ownUnsuited": unsuited,
            "changed": request.has_changes,
        }


def _list_unsuited(situation: Situation, gathered: Gathered) -> Iterator[Json]:
    """List the DaemonSets of one's own files for which no node is suitable, with the reason."""
    inventory = situation.inventory
    unsuited = set(situation.making.idle[Idle.UNSUITED])
    for given in inventory.workloads:
        key = kinds.read_key(given.body)
        if key in unsuited and gathered.origins[given.position].file in gathered.own:
            reason = explain_unsuited(given.body["spec"], inventory.nodes)
            yield key._asdict() | {"reason": reason}


def _warn_of_ignored(request: Request, gathered: Gathered, pods: Iterable[Json]) -> Iterator[str]:
    """Warn that files of ``-f`` are taken as the baseline, if pods wait there: these pods do not count."""
    taken = sorted(gathered.baseline - {CLUSTER, *request.baseline})
    n = sum(not pod["counts"] for pod in pods)
    if taken and n:
        names = ", ".join("standard input" if name == "-" else name for name in taken)
        are, hold = ("is", "it holds") if len(taken) == 1 else ("are", "they hold")
        wait, do = ("waits", "does") if n == 1 else ("wait", "do")
        yield (
            f"{names} {are} taken as the baseline, because {hold} nodes or running pods: {count_nouns(n, 'pod')} that "
            f"{wait} there {do} not count for the exit code, as only pods of the other files do"
        )


def _find_code(request: Request, results: Collection[Json]) -> int:
    """Find the exit code: mistakes go before pending pods, which may be pending because of a mistake."""
    if any(one["counts"] for result in results for one in result["mistakes"]):
        return MISTAKES
    pods = (pod for result in results for pod in result["pods"])
    is_any_pending = any(pod["node"] is None and pod["counts"] for pod in pods)
    return PENDING if request.fail_if_pending and is_any_pending else OK


def _read_changes(request: Request, origins: list[Origin], stdin: TextIO) -> Changes:
    nodes: list[Mapping[str, Any]] = []
    policies: list[Mapping[str, Any]] = []
    for name in request.add_nodes:
        where = f"--add-node {name}"
        add_objects(name_origins(where, files.read_placed(name, stdin, where)), nodes, origins)
    for name in request.policies:
        where = f"--policy {name}"
        add_objects(name_origins(where, files.read_policies(name, stdin, where)), policies, origins)
    return Changes(
        without=request.without_nodes,
        cordoned=request.cordon,
        drained=request.drain,
        scale=request.scale,
        nodes=nodes,
        policies=policies,
    )


def _place(situation: Situation, question: run.Question, origins: list[Origin], tell: Tell) -> Json:
    what = f"placing pods with {question.mode}" if question.mode else "placing pods"
    result = run.place_pods(situation, question, lambda done, total: tell(what, done, total))
    problems = situation.inventory.mistakes.values()
    for row, problem in zip(result["mistakes"], problems, strict=True):
        row.update(origins[problem.position]._asdict())
    for pod in result["pods"]:
        pod["file"] = origins[situation.inventory.positions[pod["uid"]]].file
    return result


def _read_modes(given: Sequence[str]) -> list[Mode | None]:
    """Read the modes to place with; a single None if none is given."""
    if not given:
        return [None]
    words = [word.strip() for text in given for word in text.split(",")]
    for word in words:
        if word not in MODES:
            raise BadInput("--mode", f'"{word}" is not one of {", ".join(MODES)}')
    return [Mode(word) for word in dict.fromkeys(words)]
