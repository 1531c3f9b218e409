"""Where access to a cluster is read from, and what a user is told when there is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import BadInput
from scheduler.kube import client, kubeconfig


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(kubeconfig, "IN_CLUSTER_TOKEN", tmp_path / "no-token")
    return tmp_path


def written(path: Path, *contexts: str, current: str | None = "a") -> Path:
    """A kubeconfig whose contexts lead to a server of their name."""
    content: dict[str, Any] = {
        "clusters": [{"name": c, "cluster": {"server": f"https://{c}"}} for c in contexts],
        "contexts": [{"name": c, "context": {"cluster": c, "user": "u"}} for c in contexts],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    if current:
        content["current-context"] = current
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def refused(path: str | None = None, context: str | None = None) -> str:
    with pytest.raises(BadInput) as caught:
        client.load_access(path, context)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_named_file_comes_before_the_environment_and_that_before_the_pod_and_the_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home / ".kube/config", "a", "at-home")
    assert client.load_access(None).url == "https://a"
    assert client.load_access(None, "at-home").url == "https://at-home"
    monkeypatch.setattr(kubeconfig, "IN_CLUSTER_TOKEN", home / ".kube/config")
    # In a pod, though what else is needed there is missing here.
    assert "the pod's service account cannot be used" in refused()
    # Who asks for a context asks for a kubeconfig.
    assert client.load_access(None, "at-home").url == "https://at-home"
    listed = f"{home}/gone:{written(home / 'listed', 'listed', current='listed')}"
    monkeypatch.setenv("KUBECONFIG", listed)
    assert client.load_access(None).url == "https://listed"
    named = written(home / "named", "named", current="named")
    assert client.load_access(str(named)).url == "https://named"


def test_without_any_what_was_looked_for_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused()
    for where in ("$KUBECONFIG is not set", f"{home}/no-token", f"{home}/.kube/config"):
        assert where in told
    assert told.endswith("name one with --kubeconfig FILE")
    monkeypatch.setenv("KUBECONFIG", f"{home}/one:{home}/two")
    assert refused().startswith(f"$KUBECONFIG={home}/one:{home}/two: no such file; name another")
    assert refused("/nowhere/at/all") == "--kubeconfig /nowhere/at/all: no such file"


def test_an_unknown_context_is_told_with_those_that_there_are(home: Path) -> None:
    path = str(written(home / "k", "a", "b"))
    assert (
        refused(path, "c") == f"--context c: is not in --kubeconfig {path}; its contexts are a, b"
    )
    path = str(written(home / "none", "a", "b", current=None))
    assert refused(path) == (
        f"--context: is needed, --kubeconfig {path} has no current-context; its contexts are a, b"
    )
    assert client.load_access(path, "b").url == "https://b"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- a\n- b\n", "is not a kubeconfig: it must be a mapping"),
        (b"a: [\n", "is not YAML: line 2, column 1: a value is missing here"),
        (b"\xff", "is not UTF-8 text"),
        (b"contexts: [3]\ncurrent-context: a\n", "a"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_told_in_one_line(
    home: Path, content: bytes, said: str
) -> None:
    path = home / "k"
    path.write_bytes(content)
    told = refused(str(path))
    assert str(path) in told
    assert said in told
    assert f"{home} is a folder, not a file" in refused(str(home))
