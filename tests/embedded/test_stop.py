"""The end of an operator: whoever asks for it twice is not told of an error."""

import os
import signal
import time

import pytest

from tests.operator import process, servers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_again_and_again_ends_it_once(number: signal.Signals) -> None:
    with servers.embedded() as server:
        operator = process.Operator(server)
        try:
            operator.wait_ready()
            # It may be ready before its kernels are loaded, and a signal until then ends the start.
            while not operator.said("started"):
                assert operator.is_running, operator.log
                time.sleep(0.05)
            # Faster than any loop turns, so that some come before the first is heard of.
            for _ in range(50):
                os.kill(operator.pid, number)
        finally:
            ended = operator.stop()
        assert ended.code == 0
        assert operator.said("stopped")
        operator.check_log()
