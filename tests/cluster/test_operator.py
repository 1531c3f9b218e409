"""The operator on a real API server, with the rights of manifests/base and no others: every claim of tests/operator holds."""

from collections.abc import Iterator

import pytest

from tests.operator import servers
from tests.operator.shared import operator, test_operator  # noqa: F401 - collected here


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.real() as running:
        yield running
