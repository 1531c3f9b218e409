"""Every piece of YAML in the documentation is what it looks like: objects, a part of a pod, or a configuration file."""

from typing import Any

import pytest
import yaml

from scheduler import config
from scheduler.simulate import schedule
from tests.docs import blocks, examples

Json = dict[str, Any]
SNIPPETS = [block for page in blocks.PAGES for block in blocks.of(page) if block.language == "yaml"]


@pytest.mark.parametrize("block", SNIPPETS, ids=lambda block: block.place)
def test_a_snippet_is_read_without_a_complaint(block: blocks.Block) -> None:
    documents = list(yaml.safe_load_all(block.text))
    assert documents
    for one in documents:
        if "kind" in one:
            assert not schedule([one])["mistakes"]
        elif "spec" in one:
            placed(one)
        else:
            config.parse_config(one)


def placed(part: Json) -> None:
    """A pod with what the snippet leaves out goes to one of the nodes of the examples."""
    meta = {"name": "snippet", **part.get("metadata", {})}
    pod = {**part, "apiVersion": "v1", "kind": "Pod", "metadata": meta}
    (found,) = schedule([*examples.read(examples.NODES), pod])["pods"]
    assert found["node"], found["message"]


def test_there_are_snippets_of_every_kind() -> None:
    """Else the test above would look at nothing of some."""
    kinds = [set(one) for block in SNIPPETS for one in yaml.safe_load_all(block.text)]
    assert any("kind" in one for one in kinds)
    assert any("spec" in one and "kind" not in one for one in kinds)
    assert any("profiles" in one for one in kinds)
