"""The operator with a main loop that does nothing else while a file is there: run in place of ``scheduler``.

Python calls a signal's handler in the main thread, between two steps of whatever runs there.
"""

import os
import signal
import time
from pathlib import Path

from scheduler import cli


def _be_busy(*_: object) -> None:
    while Path(os.environ["BUSY_WHILE"]).exists():
        time.sleep(0.01)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _be_busy)
    cli.main()
