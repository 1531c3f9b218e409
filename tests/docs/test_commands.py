"""Every command of the documentation that needs Python only is run; tests/cluster runs the others.

No command is left out in silence: those that cannot be run anywhere here are listed, with the reason that stands
in a comment before them.
"""

from pathlib import Path

import pytest

from tests.docs import blocks, runner

CONSOLES = [
    block for page in blocks.PAGES for block in blocks.of(page) if block.language == "console"
]
# The first command of each block that is not run, and why.
NOT_RUN = {
    "docs/user-guide.md": {
        "helm template DIR | evenkeel simulate --baseline cluster.json -f - --fail-if-pending": "helm needs a chart",
    },
    "docs/install.md": {
        "make image IMAGE=REGISTRY/evenkeel:0.1.0": "needs docker",
        "kubectl rollout status deployment/evenkeel -n evenkeel-system": "needs nodes that run containers",
        "evenkeel/bin/pip install dist/evenkeel_scheduler-0.1.0-py3-none-any.whl": "downloads every dependency",
    },
    "docs/migrate.md": {
        "kubectl get lease kube-scheduler -n kube-system": "needs kube-scheduler",
        "helm upgrade evenkeel manifests/chart -n evenkeel-system --reset-then-reuse-values -f manifests/chart/in-place.yaml": "the installation before it was made by kustomize",
        "mv /etc/kubernetes/manifests/kube-scheduler.yaml /root && sleep 20 && mv /root/kube-scheduler.yaml /etc/kubernetes/manifests/": "on a node of the control plane",
        "kubectl scale deployment/evenkeel -n evenkeel-system --replicas=0": "needs nodes that run containers",
        "evenkeel queue list --context my-cluster": "needs a cluster with Kueue and its objects",
        "evenkeel queue tree --context my-cluster": "needs a cluster with KAI and its objects",
        "kubectl scale deployment kai-operator --namespace kai-scheduler --replicas=0": "needs a cluster with KAI and its objects",
        "kubectl delete mutatingwebhookconfiguration mutating-kai-admission": "needs a cluster with KAI and its objects",
        "kubectl delete mutatingwebhookconfiguration kueue-mutating-webhook-configuration": "needs a cluster with Kueue and its objects",
    },
}
# Where commands are run with other words: smaller ones, where the originals take minutes to an hour, and the names
# of the cluster that is there.
CHANGED = {"README.md", "docs/migrate.md", "docs/placement-figures.md", "docs/user-guide.md"}
LANGUAGES = {"", "console", "yaml", "python", "text", "promql", "json"}


def _by_page(wanted: bool) -> dict[str, list[blocks.Block]]:
    pages: dict[str, list[blocks.Block]] = {}
    for block in CONSOLES:
        if block.steps_to_run and runner.needs_more(block) is wanted:
            pages.setdefault(str(block.page.relative_to(blocks.ROOT)), []).append(block)
    return pages


HERE = _by_page(wanted=False)


@pytest.mark.parametrize("page", HERE)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    folder = runner.clone(tmp_path)
    env = runner.environment(folder)
    for block in HERE[page]:
        assert not (complaint := runner.complaint(block, folder, env)), complaint


def test_what_is_not_run_is_listed_with_its_reason() -> None:
    found: dict[str, dict[str, str]] = {}
    for block in CONSOLES:
        if reason := block.notes.get("not run"):
            page = found.setdefault(str(block.page.relative_to(blocks.ROOT)), {})
            page[block.steps[0].command.partition("  ")[0]] = reason
    assert found == NOT_RUN


def test_what_is_run_with_other_words_is_listed() -> None:
    found = {str(b.page.relative_to(blocks.ROOT)) for b in CONSOLES if "run with" in b.notes}
    assert found == CHANGED


def test_commands_stand_where_they_are_run() -> None:
    """A block of another language would be passed over."""
    everything = [block for page in blocks.PAGES for block in blocks.of(page)]
    assert {block.language for block in everything} <= LANGUAGES
    shown = [b.place for b in everything if b.language != "console" and "\n$ " in f"\n{b.text}"]
    assert shown == []
    assert all(block.steps for block in CONSOLES)
