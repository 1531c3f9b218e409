"""The operator on the embedded cluster: every claim of tests/operator holds."""

from collections.abc import Iterator

import pytest

from tests.operator import servers
from tests.operator.shared import operator, test_operator  # noqa: F401 - collected here


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running
