"""The operator as users run it, against any API server: a process, a kubeconfig, nothing inside.

What belongs here: the worlds that the operator lives in (``servers``: embedded or real, ``process``:
the operator itself, ``world``: what a test does with both), the claims that hold on every server
(``cases_*``; tests/embedded/test_operator.py and tests/cluster/test_operator.py run all of them),
and ``audit``, which recomputes from API objects alone that nothing is over-allocated. What does not:
claims about one server only; those stand beside the tests of that server.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"tests.operator.{module}"
        for module in (
            "audit",
            "world",
            "cases_autoscalers",
            "cases_binding",
            "cases_claims",
            "cases_waiting",
            "cases_mistakes",
            "cases_hami",
            "cases_hostile",
            "cases_locks",
            "cases_migration",
            "cases_policies",
            "cases_profiles",
            "cases_replicas",
            "cases_volumes",
        )
    )
)
