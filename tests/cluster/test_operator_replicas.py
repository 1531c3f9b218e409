"""Replicas on a real API server, started, stopped and doubled by each test itself."""

from collections.abc import Iterator

import pytest

from tests.operator import servers
from tests.operator.shared import test_replicas, world  # noqa: F401 - collected here


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.real() as running:
        yield running
