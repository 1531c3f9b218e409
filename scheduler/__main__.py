"""``python -m scheduler`` is ``evenkeel``."""

from scheduler.cli import main

main()
