"""The console script ``evenkeel``: sure that ``scheduler`` is Evenkeel's before anything of it runs.

The package has a name that other distributions use too. Installed in one environment they write over
each other, and what comes first on the path wins; this module has a name of its own. It imports where Ctrl-C
is answered: whoever presses it at once is shown no traceback.
"""

from __future__ import annotations

import sys

_FIRST_WORD = '"""Evenkeel:'


def main() -> None:
    """Run ``evenkeel``, or end with 2 and say why when ``scheduler`` is somebody else's."""
    try:
        import os  # noqa: PLC0415
        import signal  # noqa: PLC0415

        # The first process of a container is not ended by what SIGTERM does by default. Nor is an exception enough:
        # whatever is being imported may catch it, and the process would go on.
        signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))
        at_ctrl_c = signal.getsignal(signal.SIGINT)
        if at_ctrl_c is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))
        if complaint := _stranger():
            import textwrap  # noqa: PLC0415

            lines = textwrap.fill(f"evenkeel: {complaint}", 80, subsequent_indent="  ",
                                  break_long_words=False, break_on_hyphens=False)  # fmt: skip
            sys.stderr.write(f"{lines}\n")
            sys.exit(2)
        from scheduler.cli import main as run  # noqa: PLC0415 - only once it is known to be ours

        # A command may have something to clean up.
        signal.signal(signal.SIGINT, at_ctrl_c)
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        run()
    except KeyboardInterrupt:
        # Before a command runs; from then on typer does the same.
        sys.exit(130)


def _stranger() -> str:
    """What is wrong with the package that ``import scheduler`` would take; empty when nothing."""
    import importlib.util  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    spec = importlib.util.find_spec("scheduler")
    origin = spec.origin if spec is not None else None
    if origin is None:
        found = "is not there" if spec is None else f"has no code of its own ({spec.name})"
    elif Path(origin).read_text(encoding="utf-8", errors="replace").startswith(_FIRST_WORD):
        return ""
    else:
        found = f"is not Evenkeel's but another's: {origin}"
    return (
        f"the Python package `scheduler` {found}. Another distribution installs a package of that"
        " name too, or it comes earlier on the path (PYTHONPATH). Install Evenkeel in an environment"
        " of its own, `python3 -m venv evenkeel && evenkeel/bin/pip install …`, or use its image."
    )
