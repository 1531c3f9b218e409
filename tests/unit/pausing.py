"""Ways to call ``decide``: at once, or with a pause wherever there may be one."""

from scheduler.api.door.decisions import Outcome
from scheduler.engine.allowance import SpentAllowance, Unlimited, Work
from scheduler.engine.engine import Engine

MANY = 2**62


def decide_at_once(engine: Engine, now: float) -> Outcome:
    """Decide in one call."""
    return engine.decide(now, Unlimited())


def decide_one_step(engine: Engine, now: float) -> Outcome:
    """Decide until there may be a pause."""
    return engine.decide(now, SpentAllowance(MANY, (MANY,) * Work.STEP + (0,)))


def decide_in_steps(engine: Engine, now: float) -> Outcome:
    """Decide with a pause wherever there may be one."""
    outcome = decide_one_step(engine, now)
    while engine.is_deciding:
        assert not outcome.plans
        outcome = decide_one_step(engine, now)
    return outcome
