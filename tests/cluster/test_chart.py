"""The chart renders what the kustomization is, and refuses what it does not know."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler import config
from tests.controlplane.plane import ControlPlane
from tests.operator import installed

Json = dict[str, Any]

# Labels of every chart, and what Helm does to restart pods when their configuration changes.
_HELMS_OWN = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "checksum/config",
}
_OPTIONS = ("podDisruptionBudget", "networkPolicy", "serviceMonitor", "alerts", "dashboard")
_ALL = [f"--set={option}.enabled=true" for option in _OPTIONS]
_OF_PROMETHEUS = {"ServiceMonitor", "PrometheusRule"}

pytestmark = pytest.mark.usefixtures("helm")


def _plain(value: Any) -> Any:
    """A value without what Helm adds, and without empty mappings that this leaves."""
    if isinstance(value, dict):
        kept = {key: _plain(one) for key, one in value.items() if key not in _HELMS_OWN}
        return {key: one for key, one in kept.items() if one != {}}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _by_name(text: str) -> dict[tuple[str, str], Json]:
    found = {}
    for one in installed.objects(text):
        body = _plain(one)
        body["metadata"].pop("labels", None)
        # kustomize marks a configuration by its hash.
        name = re.sub(r"^evenkeel-config-\w+$", "evenkeel-config", body["metadata"]["name"])
        body["metadata"]["name"] = name
        found[body["kind"], name] = body
    return found


def _config(objects: dict[tuple[str, str], Json]) -> config.Config:
    text = objects.pop(("ConfigMap", "evenkeel-config"))["data"]["config.yaml"]
    return config.parse_config(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        ("manifests/base", []),
        ("manifests/in-place", ["-f", f"{installed.CHART}/in-place.yaml"]),
        ("manifests/queues", ["--set=config.queues.kueue=true"]),
        (
            "manifests/queues-webhook",
            ["--set=config.queues.kueue=true", "--set=webhook.enabled=true"],
        ),
        ("manifests/device-webhook", ["--set=deviceWebhook.enabled=true"]),
        ("manifests/rebalance", ["--set=rebalance.enabled=true"]),
        ("manifests/publish-parts", ["--set=config.publishParts=true"]),
        (
            "manifests/rebalance-surge",
            ["--set=rebalance.enabled=true", "--set=rebalance.surge=true"],
        ),
        (
            "manifests/hami-config",
            [
                "--set=config.hamiConfigMap=kube-system/hami-scheduler-device",
                "--set=config.hamiPluginConfigMap=kube-system/hami-device-plugin",
            ],
        ),
    ],
    ids=[
        "beside",
        "in place",
        "queues",
        "webhook",
        "device webhook",
        "rebalance",
        "parts",
        "surge",
        "hami config",
    ],
)
def test_the_chart_and_the_kustomization_are_the_same(
    folder: str, values: list[str], control_plane: ControlPlane, tmp_path: Path
) -> None:
    rendered = control_plane.kubectl("kustomize", folder)
    base = _by_name(re.sub(r"evenkeel-config-\w+", "evenkeel-config", rendered))
    chart = _by_name(installed.rendered_chart(tmp_path, *values))
    del base["Namespace", installed.NAMESPACE]
    assert base.keys() == chart.keys()
    for key, body in base.items():
        if key[0] != "ConfigMap":
            assert chart[key] == body
    settings = _config(base)
    assert settings == _config(chart)
    # What a value adds beside the scheduler leaves its settings as they are.
    is_changed = bool(values) and values[0] != "--set=rebalance.enabled=true"
    assert (settings != config.Config()) is is_changed


@pytest.mark.parametrize(
    ("values", "lease"),
    [
        (["config.schedulerName=default-scheduler"], "kube-system/kube-scheduler"),
        (["config.profiles[0].schedulerName=default-scheduler"], "kube-system/kube-scheduler"),
        (["config.schedulerName=cards"], f"{installed.NAMESPACE}/evenkeel"),
        (["config.schedulerName=default-scheduler", "lease.name=ours"], "kube-system/ours"),
        (["lease.name=ours", "lease.namespace=there"], "there/ours"),
    ],
)
def test_the_lease_is_kube_schedulers_where_its_name_is_taken(
    values: list[str], lease: str, tmp_path: Path
) -> None:
    """Else both would bind the same pods."""
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={value}" for value in values)))
    namespace, _, name = lease.partition("/")
    (container,) = chart["Deployment", "evenkeel"]["spec"]["template"]["spec"]["containers"]
    given = dict(one.split("=", 1) for one in container["args"] if "lease" in one)
    here = given["--lease-namespace"].replace("$(POD_NAMESPACE)", installed.NAMESPACE)
    assert (here, given.get("--lease-name", "evenkeel")) == (namespace, name)
    assert "--lease-seconds" not in given
    role, binding = chart["Role", "evenkeel"], chart["RoleBinding", "evenkeel"]
    assert role["rules"][1]["resourceNames"] == [name]
    assert {role["metadata"]["namespace"], binding["metadata"]["namespace"]} == {namespace}


def test_a_short_lease_is_passed_on(tmp_path: Path) -> None:
    chart = _by_name(installed.rendered_chart(tmp_path, "--set=lease.seconds=5"))
    (container,) = chart["Deployment", "evenkeel"]["spec"]["template"]["spec"]["containers"]
    assert "--lease-seconds=5" in container["args"]


def test_the_chart_lints(tmp_path: Path) -> None:
    assert "0 chart(s) failed" in installed.lint(tmp_path)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("replicas=-1", "/replicas"),
        ("replica=1", "replica"),
        ("image.digest=latest", "/image/digest"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("logLevel=loud", "/logLevel"),
        ("config.slicePod=1", "slicePod"),
        ("config.bindsInFlight=0", "/config/bindsInFlight"),
        ("config.placement.scoring.mode=kel", "/config/placement/scoring/mode"),
        ("config.placement.scoring.weights.cpu=101", "/config/placement/scoring/weights/cpu"),
        ("config.placement.nodePolicy=pack", "/config/placement/nodePolicy"),
        ("config.metrics.hami=on", "/config/metrics/hami"),
        ("config.roleLabel=a=b", "/config/roleLabel"),
        ("admissionPolicy.enable=false", "enable"),
        ("serviceMonitor.interval=often", "/serviceMonitor/interval"),
        ("extraArgs={debug}", "/extraArgs/0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(value: str, field: str, tmp_path: Path) -> None:
    said = installed.rendered_chart(tmp_path, f"--set={value}", check=False)
    assert "values don't meet the specifications" in said
    assert field in said


def test_values_reach_the_objects(control_plane: ControlPlane, tmp_path: Path) -> None:
    values = {
        "replicas": 3,
        "image": {
            "repository": "example.com/evenkeel",
            "digest": f"sha256:{'a' * 64}",
            "pullPolicy": "Always",
            "pullSecrets": [{"name": "mine"}],
        },
        "config": {"schedulerName": "cards", "placement": {"scoring": {"mode": "best-fit"}}},
        "logLevel": "debug",
        "resources": {"requests": {"cpu": "2"}},
        "priorityClassName": "urgent",
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "extraArgs": ["--context=other"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "proxy"}],
        "admissionPolicy": {
            "allowed": ["system:serviceaccount:backup:restore"],
            "deviceDomains": ["cards.example.com"],
        },
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    chart = _by_name(installed.rendered_chart(tmp_path, "-f", str(file), *_ALL))
    taken = [copy.deepcopy(o) for (kind, _), o in chart.items() if kind not in _OF_PROMETHEUS]
    for one in taken:
        one["metadata"].pop("namespace", None)
    control_plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-",
        stdin=yaml.safe_dump_all(taken),
    )  # fmt: skip
    deployment = chart["Deployment", "evenkeel"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["replicas"] == 3
    assert container["image"] == f"example.com/evenkeel@sha256:{'a' * 64}"
    assert container["imagePullPolicy"] == "Always"
    assert pod["imagePullSecrets"] == [{"name": "mine"}]
    assert {"--log-level=debug", "--context=other"} <= set(container["args"])
    assert container["resources"]["requests"]["cpu"] == "2"
    assert container["env"][-1] == {"name": "HTTPS_PROXY", "value": "proxy"}
    assert pod["priorityClassName"] == "urgent"
    assert pod["nodeSelector"] == {"pool": "system"}
    assert pod["tolerations"] == [{"key": "system", "operator": "Exists"}]
    assert "podAntiAffinity" not in pod.get("affinity", {})
    policy = chart["ValidatingAdmissionPolicy", "evenkeel"]["spec"]
    assert policy["variables"][0]["expression"] == '["system:serviceaccount:backup:restore"]'
    domains = json.loads(policy["variables"][1]["expression"])
    assert {"nvidia.com", "cards.example.com"} <= set(domains)
    settings = _config(chart)
    assert settings.scheduler_name == "cards"
    assert str(settings.placement.mode) == "best-fit"


def test_the_service_of_the_webhook_selects_the_leader_if_it_is_told_to(tmp_path: Path) -> None:
    webhook = ("--set=config.queues.kueue=true", "--set=webhook.enabled=true")
    name = ("Service", "evenkeel-webhook")
    all_of_them = _by_name(installed.rendered_chart(tmp_path, *webhook))[name]["spec"]["selector"]
    assert "leader" not in all_of_them.values()
    leader_only = (*webhook, "--set=webhook.leaderOnly=true")
    said = installed.rendered_chart(tmp_path, *leader_only, check=False)
    assert "webhook.leaderOnly needs config.roleLabel" in said
    key = "hami.io/scheduler-role"
    chart = _by_name(installed.rendered_chart(tmp_path, *leader_only, f"--set=config.roleLabel={key}"))  # fmt: skip
    assert chart[name]["spec"]["selector"] == {**all_of_them, key: "leader"}
    assert _config(chart).role_label == key


def test_cert_manager_can_make_the_certificate_of_the_webhook(tmp_path: Path) -> None:
    values = (
        "config.queues.kueue=true", "webhook.enabled=true", "webhook.failurePolicy=Ignore",
        "webhook.certManager.enabled=true", "webhook.certManager.issuerRef.name=mine",
    )  # fmt: skip
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={value}" for value in values)))
    name = "evenkeel-webhook"
    wanted = chart["Certificate", name]["spec"]
    assert wanted["secretName"] == name
    assert wanted["dnsNames"] == [f"{name}.{installed.NAMESPACE}.svc"]
    assert wanted["issuerRef"] == {"name": "mine"}
    # Nothing is written then, so no right to it is needed.
    assert not {("Secret", name), ("Role", name), ("ClusterRole", name)} & chart.keys()
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        found = chart[kind, name]
        injected = found["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        assert injected == f"{installed.NAMESPACE}/{name}"
        assert {one["failurePolicy"] for one in found["webhooks"]} == {"Ignore"}
    pod = chart["Deployment", "evenkeel"]["spec"]["template"]["spec"]
    folder = "/etc/evenkeel-webhook"
    (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["mountPath"] == folder)
    assert {"name": mount["name"], "secret": {"secretName": name}} in pod["volumes"]
    settings = _config(chart).queues.webhook
    assert settings is not None
    assert settings.certificates == folder


def test_one_webhook_serves_queues_and_devices(tmp_path: Path) -> None:
    values = (
        "config.queues.kueue=true", "webhook.enabled=true", "deviceWebhook.enabled=true",
        "deviceWebhook.takeOver={hami-scheduler}", "deviceWebhook.failurePolicy=Ignore",
        "deviceWebhook.ignoredNamespaces={other}", "deviceWebhook.objectSelector.matchLabels.team=a",
    )  # fmt: skip
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={value}" for value in values)))
    of_devices = chart["MutatingWebhookConfiguration", "evenkeel-webhook-devices"]["webhooks"]
    (rule,) = chart["ClusterRole", "evenkeel-webhook"]["rules"]
    assert rule["resourceNames"] == ["evenkeel-webhook", "evenkeel-webhook-devices"]
    with_devices, others = of_devices
    assert (with_devices["failurePolicy"], others["failurePolicy"]) == ("Ignore", "Ignore")
    for one in of_devices:
        names = one["namespaceSelector"]["matchExpressions"][0]["values"]
        assert {"kube-system", installed.NAMESPACE, "other"} < set(names)
        assert one["objectSelector"]["matchLabels"] == {"team": "a"}
    conditions = [
        {each["name"]: each["expression"] for each in one["matchConditions"]} for one in of_devices
    ]
    assert "['default-scheduler', 'evenkeel', 'hami-scheduler']" in conditions[0]["ours"]
    assert conditions[1]["ours"].endswith("['hami-scheduler']")
    assert conditions[1]["others"] == "!" + conditions[0]["devices"]
    settings = _config(chart)
    served = settings.webhook
    assert served is not None
    assert (served.for_queues, served.for_devices) == (True, True)
    assert settings.device_webhook is not None
    assert settings.device_webhook.admission.taken_over == ("hami-scheduler",)


def test_pods_that_may_keep_default_scheduler_do_not_depend_on_the_webhook(tmp_path: Path) -> None:
    values = ("deviceWebhook.enabled=true", "deviceWebhook.forceOverwriteDefaultScheduler=false", "config.profiles[0].schedulerName=second")  # fmt: skip
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={value}" for value in values)))
    (hook,) = chart["MutatingWebhookConfiguration", "evenkeel-webhook-devices"]["webhooks"]
    assert hook["matchConditions"][1]["expression"].endswith(" in ['evenkeel', 'second']")
    settings = _config(chart).device_webhook
    assert settings is not None
    assert not settings.admission.overwrites_default


def test_pods_without_devices_come_to_the_webhook_where_all_containers_get_something(
    tmp_path: Path,
) -> None:
    on = "--set=deviceWebhook.enabled=true"
    for value in ("overwriteEnv=true", "gpuCorePolicy=force"):
        text = installed.rendered_chart(tmp_path, on, f"--set=deviceWebhook.nvidia.{value}")
        chart = _by_name(text)
        _, others = chart["MutatingWebhookConfiguration", "evenkeel-webhook-devices"]["webhooks"]
        assert others["failurePolicy"] == "Ignore"
        assert "'default-scheduler', 'evenkeel'" in others["matchConditions"][1]["expression"]


def test_cert_manager_can_make_the_certificate_of_the_webhook_for_devices(tmp_path: Path) -> None:
    values = ("deviceWebhook.enabled=true", "webhook.certManager.enabled=true", "webhook.certManager.issuerRef.name=mine")  # fmt: skip
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={value}" for value in values)))
    name = "evenkeel-webhook"
    assert chart["Certificate", name]["spec"]["secretName"] == name
    assert not {("Secret", name), ("Role", name), ("ClusterRole", name)} & chart.keys()
    found = chart["MutatingWebhookConfiguration", f"{name}-devices"]
    injected = found["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert injected == f"{installed.NAMESPACE}/{name}"
    pod = chart["Deployment", "evenkeel"]["spec"]["template"]["spec"]
    assert "/etc/evenkeel-webhook" in [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]  # fmt: skip
    settings = _config(chart).device_webhook
    assert settings is not None
    assert settings.serving.certificates == "/etc/evenkeel-webhook"


def test_a_webhook_without_queues_is_refused(tmp_path: Path) -> None:
    said = installed.rendered_chart(tmp_path, "--set=webhook.enabled=true", check=False)
    assert "webhook.enabled needs config.queues.kueue=true" in said


def test_the_process_that_moves_pods_is_watched_and_has_the_environment_of_the_chart(
    tmp_path: Path,
) -> None:
    given = (
        "rebalance.enabled=true", "serviceMonitor.enabled=true", "extraEnv[0].name=TZ", "extraEnv[0].value=UTC",
    )  # fmt: skip
    chart = _by_name(installed.rendered_chart(tmp_path, *(f"--set={one}" for one in given)))
    name = "evenkeel-rebalance"
    pod = chart["Deployment", name]["spec"]["template"]
    assert {"name": "TZ", "value": "UTC"} in pod["spec"]["containers"][0]["env"]
    labels = pod["metadata"]["labels"]
    service = chart["Service", name]["spec"]
    assert service["selector"].items() <= labels.items()
    wanted = chart["ServiceMonitor", name]["spec"]["selector"]["matchLabels"]
    assert wanted == service["selector"] != chart["Service", "evenkeel"]["spec"]["selector"]


def test_the_admission_policy_can_be_left_out(tmp_path: Path) -> None:
    off = ("--set=admissionPolicy.enabled=false", "--set=config.queues.kueue=true")
    text = installed.rendered_chart(tmp_path, *off)
    assert "ValidatingAdmissionPolicy" not in text
    # Everybody can write claims then.
    assert not _config(_by_name(text)).trust_claims
