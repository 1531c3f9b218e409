"""The end of an operator: whoever asks for it twice is not told of an error."""

import os
import signal

import pytest

from tests.operator import process, servers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_again_and_again_ends_it_once(number: signal.Signals) -> None:
    with servers.embedded() as server:
        operator = process.Operator(server)
        try:
            operator.wait_ready()
            # Faster than any loop turns, so that some come before the first is heard of.
            for _ in range(50):
                os.kill(operator.pid, number)
        finally:
            ended = operator.stop()
        assert ended.code == 0
        assert operator.said("stopped")
        operator.check_log()
