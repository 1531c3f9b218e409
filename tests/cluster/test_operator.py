"""The operator on a real API server, with the rights of manifests/base and no others: every claim of tests/operator holds."""

from tests.operator.shared import operator, test_operator  # noqa: F401 - collected here
