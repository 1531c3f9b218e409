"""``python -m scheduler`` is ``evenkeel``."""

from evenkeel_scheduler import main

main()
