"""The operator, which compares what it knows with a fresh list every half minute: run in place of ``scheduler``."""

from scheduler import cli
from scheduler.kube.watch import verify

if __name__ == "__main__":
    verify._SECONDS = 30.0
    cli.main()
