"""How many pods of a template a group needs at once at least."""

from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord
from tests import make


def make_pods(name: str, n: int, cpu: int) -> tuple[PodRecord, ...]:
    cluster = make.cluster()
    pods = (cluster.see_pod(make.pod(name=f"{name}{i}", cpu=cpu)) for i in range(n))
    return tuple(pod for pod in pods if pod is not None)


def count_needs(team: Team) -> dict[str, int]:
    return {pod.name: n for pod, n in team.list_needs()}


def test_of_unlike_pods_those_are_needed_that_cannot_be_left_out() -> None:
    lead, work = make_pods("lead", 1, 2), make_pods("work", 4, 1)
    assert count_needs(Team("", 5, (*lead, *work))) == {"lead0": 1, "work0": 4}
    assert count_needs(Team("", 4, (*lead, *work))) == {"work0": 3}
    assert count_needs(Team("", 1, (*lead, *work))) == {}


def test_like_pods_of_several_teams_are_summed_up_if_all_teams_are_needed() -> None:
    pods = make_pods("p", 6, 1)
    teams = tuple(
        Team("", n, part, template=pods[0].template) for n, part in ((2, pods[:3]), (3, pods[3:]))
    )
    assert count_needs(Team("", 2, teams=teams)) == {"p0": 5}
    assert count_needs(Team("", 1, teams=teams)) == {}
