"""Bundles as they are before anything is in them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from scheduler.schema import choice_scores, places
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema import domains as of_domains
from scheduler.schema.card_parts import LINKED_MAX
from scheduler.schema.handles import share_array
from scheduler.schema.world import ANY_ROW, ANYWHERE, NOWHERE, Run


@lru_cache(maxsize=1)
def make_containers() -> c.Ints:
    """Make [6, 0] the requests of the containers of a pod without cards, as in ``Ask``; all such pods share it."""
    return share_array(np.zeros((c.N_ASKED, 0), np.int64))


@lru_cache(maxsize=1)
def make_kube_term() -> c.KubeTerm:
    """Make the term of pods that kube-scheduler's scores of resources do not judge; they share it."""
    return c.KubeTerm(
        fit=np.zeros((0, c.N_FIT), np.int64),
        balanced=np.zeros((0, 2), np.int64),
        figures=np.zeros(c.N_KUBE, np.int64),
    )


@lru_cache(maxsize=1)
def make_claim_ask() -> d.ClaimAsk:
    """Make the ask of a pod without pending claims; all such pods share it."""
    none = np.zeros(0, np.int64)
    return d.ClaimAsk(
        leaves=np.zeros((0, d.N_LEAF), np.int64),
        first=np.zeros(1, np.int64),
        may_have=np.zeros((0, 0), np.bool_),
        fails=np.zeros((0, 0), np.bool_),
        barred=np.zeros((0, 0), np.bool_),
        picked=np.zeros((0, 0), np.bool_),
        consumes=np.zeros((0, 0), np.int64),
        amounts=none,
        constraints=np.zeros((0, d.N_CONSTRAINT), np.int64),
        is_about=np.zeros((0, 0), np.bool_),
        policy=d.FIRST_FIT,
        preferred=0,
        is_ranked=False,
        by_state=True,
        most=0,
    ).seal()


def make_claim_scratch(
    most_devices: int, steps: int, counters: int = 1, capacity: int = 0
) -> d.ClaimScratch:
    """Make the working space for nodes of so many devices, pods of so many, sets of so many counters, and rows of nodes."""
    return d.ClaimScratch(
        local=np.zeros(most_devices, np.int64),
        tried=np.zeros((steps, most_devices), np.bool_),
        leaf=np.zeros(steps, np.int64),
        nth=np.zeros(steps, np.int64),
        need=np.zeros(steps, np.int64),
        pick=np.zeros(steps, np.int64),
        run=np.zeros(steps, np.int64),
        request=np.zeros(steps, np.int64),
        drawn=np.zeros(counters, np.int64),
        lost_by=np.full((d.LOST_MOST, 3), -1, np.int64),
        lost=np.zeros(d.LOST_MOST),
        left=np.zeros(1, np.int64),
        n_local=np.zeros(1, np.int64),
        figures=np.zeros(d.N_FIGURES),
        memo=d.ClaimMemo(
            number=np.zeros(2, np.int64),
            known=np.zeros(capacity, np.int64),
            found=np.zeros(capacity, np.int64),
            figures=np.zeros((capacity, d.N_FIGURES)),
        ),
    )


def make_ask() -> c.Ask:
    """Make the ask of a pod that asks for nothing."""
    none, no_flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return c.Ask(
        charge=0,
        resources=none,
        amounts=none,
        by_cards=none,
        nonzero=np.zeros(2, np.int64),
        dim_amounts=np.zeros(c.N_DIMS, np.int64),
        containers=make_containers(),
        more=(),
        claims=make_claim_ask(),
        family=-1,
        rules=c.CardRules(
            numa_bind=False,
            linked=False,
            mutex=False,
            any_idle=False,
            closing=0,
            opening=0,
            keeping=0,
            coreless=False,
            avoid_gpu=False,
            whole=0,
            joint=False,
            walk=False,
            only=-1,
            size=0,
            draw=0,
        ),
        kube=make_kube_term(),
        prefers=c.Preferences(
            card_weights=np.zeros(3, np.int64),
            sort_keys=np.zeros(4, np.int64),
            model_ok=no_flags,
            mode_ok=no_flags,
            uuid_ok=no_flags,
            mode=c.ModeTerm(
                blind=0,
                weight=0,
                aware=-1,
                objective=c.NO_OBJECTIVE,
                unit=1,
                scorer=choice_scores.NO_SCORE,
                extra=0,
            ),
            weights=np.zeros(c.N_DIMS, np.int64),
            dims=np.full(c.N_DIMS, -1, np.int64),
            sizes=none,
            curve=np.zeros((2, 0), np.int64),
            bits=np.zeros(c.N_BITS, np.int64),
        ),
    )


@lru_cache(maxsize=1)
def make_domains() -> of_domains.Domains:
    """Make the domains of a shape that counts no pods; such shapes share them."""
    return of_domains.Domains(
        tallies=np.zeros((0, of_domains.N_TALLY), np.int64),
        counts=np.zeros((0, 0), np.int64),
        there=np.zeros((0, 0), np.bool_),
        domain=np.zeros((0, 0), np.int64),
        counted=np.zeros((0, 0), np.bool_),
        figures=np.zeros(of_domains.N_FIGURES, np.int64),
        scores=np.zeros((0, c.N_NORM), np.int64),
        raw=np.zeros((0, 0), np.int64),
        points=np.zeros((0, 0), np.int64),
        logs=np.zeros(0),
        seen=np.zeros(0, np.int64),
    )


def make_board(
    capacity: int, words: int = 1, *, linked: bool = False, ranked: bool = False
) -> c.Board:
    """Make a board of so many rows and words of refusal bits, on which nothing fits yet.

    It has room for points for links with ``linked``, and for alternatives of claims with ``ranked``.
    """
    return c.Board(
        static=np.zeros(capacity, np.int64),
        scores=np.zeros((0, capacity), np.int64),
        norms=np.zeros((0, c.N_NORM), np.int64),
        base=np.zeros(1, np.int64),
        choices=np.zeros(capacity if ranked else 0, np.int64),
        choice_norm=np.zeros(c.N_NORM, np.int64),
        domains=make_domains(),
        refused=np.zeros((words, capacity), np.int64),
        part=np.full(capacity, -1, np.int64),
        links=np.zeros(capacity if linked else 0, np.int64),
        key=np.full(capacity, -1, np.int64),
        best=np.full(capacity // c.BLOCK, -1, np.int64),
    )


def make_run() -> Run:
    """Make a run of no pods: it only brings a board up to date."""
    none, no_picks = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    fields = [*[none] * 4, *[no_picks] * 5, none, no_picks, no_picks]
    return Run(none, ANY_ROW, ANYWHERE, none, NOWHERE, *fields)


def make_scratch(
    most_cards: int,
    most_picks: int,
    typical: int,
    claims: d.ClaimScratch | None = None,
    most_held: int = 0,
) -> c.Scratch:
    """Make the working space for nodes of so many cards, pods of so many picks, and so many typical pods.

    ``claims`` is the working space for claims, of which a pod holds ``most_held`` rows at most.
    """
    lanes = np.zeros(c.LANES_END)
    linked = min(most_cards, LINKED_MAX)
    return c.Scratch(
        lanes=lanes,
        cap=lanes[c.LANES_CAP : c.LANES_USED].reshape(c.N_DIMS, c.BLOCK),
        used=lanes[c.LANES_USED : c.LANES_ASK].reshape(c.N_DIMS, c.BLOCK),
        ask=lanes[c.LANES_ASK : c.LANES_OUT].reshape(c.N_DIMS, c.BLOCK),
        out=lanes[c.LANES_OUT : c.LANES_WORK],
        points=np.zeros(c.BLOCK, np.int64),
        rows=np.zeros(c.BLOCK, np.int64),
        changed=np.zeros(1, np.int64),
        order=np.zeros(most_cards, np.int64),
        held=np.zeros((3, most_cards), np.int64),
        peak=np.zeros((3, most_cards), np.int64),
        card_score=np.zeros(most_cards, np.float32),
        picks=np.zeros(most_picks, np.int64),
        pick_mib=np.zeros(most_picks, np.int64),
        pick_cores=np.zeros(most_picks, np.int64),
        pick_slot=np.zeros(most_picks, np.int64),
        pick_part=np.full(most_picks, c.NO_PART, np.int64),
        first=np.zeros(2, np.int64),
        passing=np.zeros(most_cards, np.int64),
        chosen=np.zeros(most_cards, np.int64),
        trial=np.zeros(most_cards, np.int64),
        sums=np.zeros(most_cards, np.int64),
        gains=np.zeros((linked, linked), np.int64),
        pairs=np.zeros((linked, linked), np.int64),
        cut=np.zeros(most_cards, np.int64),
        only_numa=np.full(1, c.ANY_NUMA, np.int64),
        holds=np.zeros((2 * most_picks + most_held, c.N_HOLD), np.int64),
        codes=np.zeros(c.N_CARD_CODES, np.int64),
        n_picks=np.zeros(1, np.int64),
        free=np.zeros((2, most_cards), np.int64),
        states=np.zeros((4, most_cards + 1), np.int64),
        was=np.zeros(c.N_WAS, np.int64),
        tried=np.zeros(1, np.int64),
        cost=np.zeros(1),
        fits=np.zeros(typical, np.int64),
        frag=np.zeros(typical, np.int64),
        fits_with=np.zeros(typical, np.int64),
        frag_with=np.zeros(typical, np.int64),
        served=np.zeros(2),
        room=np.zeros((places.ROOM_END, places.RESOURCES_MAX)),
        places=np.zeros(places.TYPICAL_MAX),
        second=np.zeros(1, np.int64),
        choice=choice_scores.ChoiceScores(
            vendor=np.zeros(c.BLOCK),
            units=np.zeros((2, c.BLOCK)),
            links=np.zeros(c.BLOCK, np.int64),
            pairs=np.zeros(choice_scores.N_PAIRS, np.int64),
        ),
        claims=claims or make_claim_scratch(1, 1),
    )
