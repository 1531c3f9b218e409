"""Puts the parts of a plan into words, for both printed forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler.printing import count_nouns

Json = Mapping[str, Any]
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
HOW = "Each move was tried on the scheduler's own engine, in this order."


def sum_up(plan: Json) -> str:
    """Say what the plan comes to."""
    totals = plan["totals"]
    if not totals["moves"]:
        wanted = f" for pod {plan['for']}" if plan["for"] else ""
        return f"Nothing to move{wanted}: {_explain_nothing(plan)}."
    moves = [move for bundle in plan["bundles"] for move in bundle["moves"]]
    freed = Counter(
        "node" if one["what"] == "node" else "card" for move in moves for one in move["frees"]
    )
    one = "s" if len(moves) == 1 else ""
    gains = (
        [f"free{one} {_join([count_nouns(n, what) for what, n in freed.items()])}"] if freed else []
    )
    if n_came := sum(len(move["letsIn"]) for move in moves):
        gains.append(f"let{one} {count_nouns(n_came, 'waiting pod')} in")
    said = count_nouns(len(moves), "move"), count_nouns(len(plan["bundles"]), "bundle")
    return f"{said[0]} in {said[1]}: {'it' if one else 'they'} {_join(gains)}."


def list_remarks(plan: Json) -> Iterator[str]:
    """List why pods stay, and whether more could have been tried."""
    if plan["stays"] and plan["totals"]["moves"]:
        yield f"Not moved: {_list_stays(plan)}."
    tried = count_nouns(plan["tried"], "move")
    if not plan["complete"]:
        yield f"After {tried} no more was tried; more may be found once this plan is carried out."
    elif plan["movable"]:
        may = f"{count_nouns(plan['movable'], 'pod')} may be moved"
        yield f"{may}; {tried} {'was' if plan['tried'] == 1 else 'were'} tried."


def name_pod(pod: Json) -> str:
    """Name a pod with its namespace."""
    return f"{pod['namespace']}/{pod['name']}"


def name_seat(seat: Json) -> str:
    """Name a node with the cards that a pod has there."""
    cards = seat["cards"]
    if not cards:
        return str(seat["node"])
    indices = ", ".join(str(card["index"]) for card in cards)
    return f"{seat['node']} card{'s' if len(cards) > 1 else ''} {indices}"


def name_move(move: Json) -> str:
    """Name a move: the pod, where it is, and where one like it goes."""
    return f"{name_pod(move['pod'])}: {name_seat(move['from'])} -> {name_seat(move['to'])}"


def say_why(move: Json) -> str:
    """Say why a pod may go."""
    owner = f"{move['owner']['kind']} {move['owner']['name']}"
    alone = "; it is the only one, so nobody serves meanwhile" if move["onlyPod"] else ""
    return f"{owner} makes it again, and it has run for {_say_time(move['runSeconds'])}{alone}"


def list_freed(move: Json) -> Iterator[str]:
    """List what is whole after a move."""
    for one in move["frees"]:
        if one["what"] == "node":
            yield f"node {one['node']}"
        else:
            slots = "all slots of " if one["what"] == "slot" else ""
            card = one["card"]
            yield f"{slots}card {card['index']} of {one['node']} ({card['model']})"


def list_let_in(move: Json) -> Iterator[str]:
    """List who has room after a move."""
    for one in move["letsIn"]:
        group = f" of {one['group']}" if one["group"] else ""
        yield f"{name_pod(one['pod'])}{group} on {name_seat(one['to'])}"


def _join(parts: Sequence[str]) -> str:
    """Join parts of a sentence."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _explain_nothing(plan: Json) -> str:
    if not plan["movable"] and plan["stays"]:
        return f"no running pod may be moved ({_list_stays(plan)})"
    if not plan["movable"]:
        return "no pod runs that could be moved"
    if plan["for"]:
        return "no moves that were tried let it in"
    stays = f". Not moved: {_list_stays(plan)}" if plan["stays"] else ""
    return f"no moves that were tried make a card or a node whole, or let a waiting pod in{stays}"


def _list_stays(plan: Json) -> str:
    return ", ".join(f"{count_nouns(one['pods'], 'pod')} {one['reason']}" for one in plan["stays"])


def _say_time(seconds: int) -> str:
    if seconds >= _DAY:
        return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"
    if seconds >= _HOUR:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _MINUTE} min"
