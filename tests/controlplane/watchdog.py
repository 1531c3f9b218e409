"""Kill what is left when the process that started us is gone, however it went.

Run as a script with a pipe as its input. Each line is `watch GROUP`, `forget GROUP` or
`remove FOLDER`; the end of the input means that the writer has died or is done, and whatever is
still on the list goes. A pipe closes even when its writer is killed outright, which no `atexit`
sees, and unlike Linux's parent-death signal it neither depends on the thread that started a
child nor on Linux.
"""

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    """Follow the orders, then clean up."""
    groups: set[int] = set()
    folders: set[str] = set()
    for line in sys.stdin:
        order, _, rest = line.rstrip("\n").partition(" ")
        if order == "watch":
            groups.add(int(rest))
        elif order == "forget":
            groups.discard(int(rest))
        elif order == "remove":
            folders.add(rest)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
