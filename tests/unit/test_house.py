"""The house keeps its own rules: names in one place, small modules, papers that tell the truth."""

import ast
import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler import config
from scheduler.api import kinds, names, values
from scheduler.api.limits import PodLimits
from scheduler.api.placement import MODES

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "scheduler").rglob("*.py"))
CRD = ROOT / "crds/balancepolicies.yaml"
# The chart's templates are no YAML; a cluster test compares what they render with the base.
MANIFESTS = sorted(
    path for path in (ROOT / "manifests").rglob("*.yaml") if "templates" not in path.parts
)
LINES_MAX = 400
CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def documents(path: Path) -> list[dict[str, Any]]:
    loaded = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return [one for one in loaded if isinstance(one, dict)]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [d for path in MANIFESTS for d in documents(path) if d.get("kind") == kind]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_why_it_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("room", ["scheduler", "tests", "bench"])
def test_a_file_is_read_in_one_go(room: str) -> None:
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / room).rglob("*.py")
    }
    assert len(lines) > 1
    assert {path: n for path, n in lines.items() if n >= LINES_MAX} == {}


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in MODULES}), ids=lambda room: str(room.relative_to(ROOT))
)
def test_a_room_says_what_belongs_in_it(room: Path) -> None:
    doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert len(doc.split()) > 8


def test_names_of_the_api_are_written_in_one_module_only() -> None:
    """A name typed twice is a name that will differ one day."""
    wanted = {value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)}  # fmt: skip
    wanted = {name for name in wanted if "/" in name}
    found = {
        f"{path.relative_to(ROOT)}: {node.value}"
        for path in MODULES
        if path.name != "names.py" and not {"embedded", "demo"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in wanted
    }
    assert not found


def test_a_kind_of_object_is_written_in_the_table_of_kinds_and_by_who_keeps_it() -> None:
    """Else a path, a right or a dump forgets the kind that was added last."""
    plurals = {kind.plural for kind in kinds.TABLE if kind.group or kind.plural.startswith("persistent")}  # fmt: skip
    plurals -= {"deployments", "jobs", "queues"}
    # Rooms that read or write any kind; in the others are those who know some by name.
    rooms = ("kube/", "engine/", "cli/", "simulate/reading/")
    # kubectl's words for what a user asks about, and the fields of answers.
    words = {
        "explain/asked.py",
        "simulate/changes/quotas.py",
        "simulate/changes/scale.py",
        "simulate/quota_lines.py",
        "simulate/report.py",
        "simulate/run.py",
    }
    found = set()
    for path in MODULES:
        where = str(path.relative_to(ROOT / "scheduler"))
        if where in {"api/kind.py", "api/kinds.py", "api/names.py"} or where.startswith(
            ("embedded/", "demo/")
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(text, str):
                continue
            is_path = text.startswith(("/api/", "/apis/"))
            is_plural = text in plurals and where not in words
            is_name = text in kinds.BY_NAME and where.startswith(rooms)
            if is_path or is_plural or is_name:
                found.add(f"{where}: {text}")
    assert not found


def test_a_vendor_is_named_by_its_driver_and_in_its_words_only() -> None:
    """Else the next kind of device would be a special case wherever the first one is."""
    names_one = {
        str(path.relative_to(ROOT / "scheduler"))
        for path in MODULES
        if re.search(
            r"nvidia|hami|amd_gpu|\bintel", path.read_text(encoding="utf-8"), re.IGNORECASE
        )
    }
    rooms = ("api/", "devices/", "kernels/devices/", "embedded/", "demo/")
    # The name of a setting, and the part of the driver that talks to the API server.
    files = {"config.py", "kube/bind/node_lock.py"}
    # Figures of all cards under the names that another scheduler has for them.
    files |= {
        f"kube/report/metrics/{one}.py"
        for one in ("catalogue", "exposition", "hami", "hami_catalogue")
    }
    assert {name for name in names_one if not name.startswith(rooms)} == files


def test_totals_are_written_by_the_charging_kernel_only() -> None:
    """A second way to charge a pod would be taken back by other figures than it was charged."""
    totals = {"totals", "requested", "nonzero", "sizes", "gpu_used", "used", "marks"}
    writers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in totals
        # Kernels call their scratch so; its ``used`` are lanes of figures.
        and not (isinstance(node.value.value, ast.Name) and node.value.value.id == "s")
    }
    assert writers == {"scheduler/kernels/charge.py"}


def test_priorities_of_pods_that_run_are_compared_in_one_room_only() -> None:
    """Who may go for whom is one table: a second place that compares would know no budget, and later no quota."""
    found = {
        str(path.relative_to(ROOT / "scheduler"))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _compares_priorities(node)
    }
    others = {
        "defrag/waiters.py",  # who waits and comes before a new pod
        "kernels/preempt.py",  # puts the units of a place in the order of importance
        "shapes/policies.py",  # priorities of BalancePolicies
        "state/nominations.py",  # the order of pods that wait
        "telling/explained/nodes.py",  # the order in which pods are printed
        "tenancy/candidates.py",  # the policies of queues about workloads
        "replay/measures/kai_parts.py",  # priorities of queues
        "tenancy/kai/shares.py",  # priorities of queues
        "tenancy/kai/terms.py",  # below which priority a pod may be preempted, if nobody says so
        "telling/explained/sentences.py",  # the figure that is printed
    }
    assert {name for name in found if not name.startswith("disruption/")} == others
    assert {"disruption/importance.py", "disruption/protectors.py"} <= found


def _compares_priorities(node: ast.AST) -> bool:
    """Whether an expression compares priorities, or sorts by them."""
    if isinstance(node, ast.Call):
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        by = [*node.args, *(one.value for one in node.keywords)]
        return name in {"sorted", "sort", "min", "max"} and any(map(_is_priority, by))
    return (
        isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
        and any(_is_priority(one) for one in (node.left, *node.comparators))
    )


def _is_priority(node: ast.expr) -> bool:
    """Whether an expression is of something called a priority."""
    names_in = [
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute | ast.Name)
    ]
    return any(name in {"priority", "urgency", "priorities"} for name in names_in)


def test_the_crd_is_named_as_the_code_names_it() -> None:
    (crd,) = documents(CRD)
    spec = crd["spec"]
    assert crd["metadata"]["name"] == f"{names.POLICIES}.{names.GROUP}"
    assert (spec["group"], spec["names"]["plural"]) == (names.GROUP, names.POLICIES)
    assert [one["name"] for one in spec["versions"]] == [names.VERSION]
    assert spec["scope"] == "Cluster"


def test_the_chart_installs_the_same_crd() -> None:
    """Helm wants a copy; `helm package` does not follow links out of the chart."""
    copy = ROOT / "manifests/chart/crds" / CRD.name
    assert copy.read_text(encoding="utf-8") == CRD.read_text(encoding="utf-8")


def test_the_chart_has_the_same_kinds_of_kueue() -> None:
    ours, copies = (
        {path.name: path.read_text(encoding="utf-8") for path in (ROOT / folder).glob("*.yaml")}
        for folder in ("crds/kueue", "manifests/chart/kueue-crds")
    )
    kustomization = yaml.safe_load(ours.pop("kustomization.yaml"))
    assert sorted(ours) == kustomization["resources"]
    assert copies == ours


def test_kueues_kinds_are_as_the_code_reads_them() -> None:
    crds = [one for path in (ROOT / "crds/kueue").glob("*s.yaml") for one in documents(path)]
    found = {
        (one["spec"]["group"], version["name"], one["spec"]["names"]["plural"]): (
            one["spec"]["names"]["kind"],
            one["spec"]["scope"] == "Namespaced",
        )
        for one in crds
        for version in one["spec"]["versions"]
        if version["storage"]
    }
    read = {
        (kind.group, kind.version, kind.plural): (kind.kind, kind.is_namespaced)
        for kind in kinds.TABLE
        if kind.group == "kueue.x-k8s.io"
    }
    assert found == read


def test_the_configuration_map_carries_the_defaults() -> None:
    assert config.load_config(ROOT / "manifests/base/config.yaml") == config.Config()
    kustomization = (ROOT / "manifests/base/kustomization.yaml").read_text(encoding="utf-8")
    assert "config.yaml" in kustomization
    values = yaml.safe_load((ROOT / "manifests/chart/values.yaml").read_text(encoding="utf-8"))
    assert values["config"] == yaml.safe_load((ROOT / "manifests/base/config.yaml").read_text())


def test_the_charts_schema_knows_every_setting_and_what_a_policy_may_say() -> None:
    """What the schema lacks cannot be set through the chart; what it gets wrong is refused late."""
    schema = json.loads((ROOT / "manifests/chart/values.schema.json").read_text(encoding="utf-8"))
    known = schema["properties"]["config"]["properties"]
    settings = yaml.safe_load((ROOT / "manifests/base/config.yaml").read_text())
    fields = {values.write_camel(field.name) for field in dataclasses.fields(config.Config)}
    assert {*fields, "modeWeight"} == known.keys() == settings.keys()
    profile = known["profiles"]["items"]
    assert profile["properties"].keys() == set(config._OF_PROFILES)
    assert all(profile["properties"][key] == known[key] for key in config._OF_PROFILES)
    limits = {field.name for field in dataclasses.fields(PodLimits)}
    assert known["podLimits"]["properties"].keys() == limits == settings["podLimits"].keys()
    (crd,) = documents(CRD)
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    wanted = {name: _closed(spec[name]) for name in ("scoring", "nodePolicy", "gpuPolicy")}
    assert known["placement"] == {"$ref": "#/definitions/placement"}
    assert schema["definitions"]["placement"]["properties"] == wanted


def _closed(schema: Any) -> Any:
    """A part of the CRD's schema as plain JSON schema that allows no unknown field."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    words = {k: v for k, v in schema.items() if k not in {"description", "default", "format"}}
    closed = {k: _closed(v) for k, v in words.items() if not k.startswith("x-")}
    if "properties" in schema:
        closed["properties"] = {k: _closed(v) for k, v in schema["properties"].items()}
        closed["additionalProperties"] = False
    return closed


def test_rights_are_given_for_our_policies_by_the_names_in_the_code() -> None:
    rules = [rule for role in of_kind("ClusterRole") for rule in role.get("rules", ())]
    ours = [rule for rule in rules if names.GROUP in rule.get("apiGroups", ())]
    assert {r for rule in ours for r in rule["resources"]} == {
        *(
            f"{kind}{part}"
            for kind in (names.POLICIES, names.REBALANCE_POLICIES)
            for part in ("", "/status")
        )
    }
    assert not [rule for rule in rules if "*" in str(rule)]


def test_the_deployment_runs_the_command_with_a_lease_unprivileged_and_probed() -> None:
    (deployment,) = documents(ROOT / "manifests/base/deployment.yaml")
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    said = str(pod)
    assert "--lease-namespace" in said
    assert "runAsNonRoot" in said
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_user_guide_lists_every_mode_and_the_annotation_that_chooses_one() -> None:
    guide = (ROOT / "docs/user-guide.md").read_text(encoding="utf-8")
    section = guide.partition("## Modes")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    assert set(re.findall(r"`([a-z0-9-]+)`", " ".join(cells))) == set(map(str, MODES))
    assert names.MODE in guide
    assert names.OBJECTIVE in guide


def version() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: str = tomllib.loads(text)["project"]["version"]
    return found


def test_the_changelog_leads_up_to_the_version_of_the_distribution() -> None:
    """Whoever upgrades finds what changed, under headings that Keep a Changelog knows."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    heads = [section.partition("\n")[0] for section in sections]
    newest, *older = heads
    assert newest == "[Unreleased]" or newest.startswith(f"[{version()}] - ")
    dated = [head for head in heads if head != "[Unreleased]"]
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head) for head in dated)
    releases = [tuple(map(int, re.findall(r"\d+", head)[:3])) for head in dated]
    assert releases == sorted(set(releases), reverse=True)
    assert all(release <= tuple(map(int, version().split("."))) for release in releases)
    assert "[Unreleased]" not in older
    for section in sections:
        kinds = re.findall(r"^### (.+)\n\n- ", section, re.MULTILINE)
        assert kinds == re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert kinds == [kind for kind in CHANGES if kind in kinds]


def test_the_image_and_the_chart_have_the_version_too() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f'org.opencontainers.image.version="{version()}"' in dockerfile
    chart = yaml.safe_load((ROOT / "manifests/chart/Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == version()


def test_the_image_is_built_from_what_is_pinned_and_ends_with_no_tool_of_the_build() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG PYTHON=python:\S+@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert bases == ["${PYTHON}", "base", "base"]
    assert not re.search(r"pip install(?!.*(--require-hashes|--no-index))", dockerfile)
    last = dockerfile.rpartition("\nFROM ")[2]
    assert "\nRUN" not in last
    assert "\nUSER 65532:65532\n" in last
    locked = (ROOT / "requirements-build.lock").read_text(encoding="utf-8")
    assert re.search(r"^hatchling==\S+ \\$", locked, re.MULTILINE)
