"""The tests of the embedded server, against the real one: what they state is how Kubernetes answers."""

import os
import subprocess
import sys
from pathlib import Path

from tests.controlplane import plane

_EMBEDDED = Path(__file__).parents[1] / "embedded"


def test_what_is_asked_of_the_embedded_server_holds_for_the_real_one(
    control_plane: plane.ControlPlane,
) -> None:
    """In a process of its own: its fixtures choose their server by the environment."""
    files = sorted(str(path) for path in _EMBEDDED.glob("test_*.py") if "operator" not in path.name)
    assert len(files) >= 13
    server = {"EVENKEEL_API_URL": control_plane.url, "EVENKEEL_API_TOKEN": control_plane.token}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env={**os.environ, **server},
        cwd=_EMBEDDED.parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
    passed = int(run.stdout.split(" passed")[0].split()[-1])
    print(f"{passed} tests of the embedded server hold for the real one")
    assert passed > 200
