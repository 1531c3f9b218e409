"""Replicas on a real API server, started, stopped and doubled by each test itself."""

from tests.operator.shared import test_replicas  # noqa: F401 - collected here
