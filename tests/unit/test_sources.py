"""The table of what is read: which streams there are, under which names, and what they become."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.api import kinds, steering
from scheduler.api.admission.settings import Served
from scheduler.api.door import events
from scheduler.api.kind import Kind
from scheduler.api.limits import DEFAULT
from scheduler.api.names import PeerKind
from scheduler.api.queues.settings import WebhookSettings
from scheduler.config import Config
from scheduler.documents import foreign
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import MissingKeys
from scheduler.kube import rights
from scheduler.kube.inbox import Inbox
from scheduler.kube.rights import Right
from scheduler.kube.watch import sources
from scheduler.kube.watch.sources import Source
from scheduler.rebalance import service as rebalance
from tests import make

ROOT = Path(__file__).parents[2]
NOT_FAILED = "status.phase!=Failed"
UNFINISHED = f"status.phase!=Succeeded,{NOT_FAILED}"


def by_name(*schedulers: str) -> dict[str, Source[Any]]:
    found = sources.make_table(schedulers, DEFAULT)
    assert len({source.name for source in found}) == len(found)
    return {source.name: source for source in found}


def selectors(*schedulers: str) -> dict[str, str]:
    return {
        name: source.selector
        for name, source in by_name(*schedulers).items()
        if source.kind == kinds.PODS
    }


def test_one_name_has_a_stream_of_its_pods_and_one_of_all_others() -> None:
    """Their names are in metrics and probes, on which people's alerts stand."""
    assert selectors("evenkeel") == {
        "pods-ours": f"spec.schedulerName=evenkeel,{NOT_FAILED}",
        "pods-others": f"spec.nodeName!=,spec.schedulerName!=evenkeel,{UNFINISHED}",
    }
    raw = [name for name, source in by_name("evenkeel").items() if not source.kind.is_rare]
    peers = ["services", "replicationcontrollers", "replicasets", "statefulsets"]
    storage = ["persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes"]
    storage += ["csidrivers", "csistoragecapacities", "volumeattachments"]
    devices = ["resourceslices", "deviceclasses", "devicetaintrules", "resourceclaims"]
    of_groups = ["jobs", "podgroups.scheduling.k8s.io"]
    of_groups.append("compositepodgroups.scheduling.k8s.io")
    of_groups += [
        f"podgroups.scheduling.{one}" for one in ("sigs.k8s.io", "x-k8s.io", "run.ai", "volcano.sh")
    ]
    of_groups += ["topologies.kueue.x-k8s.io", "topologies.kai.scheduler"]
    of_groups += ["clusternetworktopologies", "jobsets", "leaderworkersets", "mpijobs"]
    of_groups += [
        "pytorchjobs",
        "tfjobs",
        "xgboostjobs",
        "paddlejobs",
        "jaxjobs",
        "trainjobs",
        "rayclusters",
        "rayjobs",
        "rayservices",
    ]
    assert raw == [
        "pods-ours",
        "pods-others",
        "nodes",
        *peers,
        *storage,
        *devices,
        "budgets",
        "resourcequotas",
        *of_groups,
    ]


def test_several_names_have_a_stream_each_and_others_pods_leave_out_all_of_them() -> None:
    assert selectors("evenkeel", "default-scheduler") == {
        "pods-ours-evenkeel": f"spec.schedulerName=evenkeel,{NOT_FAILED}",
        "pods-ours-default-scheduler": f"spec.schedulerName=default-scheduler,{NOT_FAILED}",
        "pods-others": "spec.nodeName!=,spec.schedulerName!=evenkeel,"
        f"spec.schedulerName!=default-scheduler,{UNFINISHED}",
    }


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("pods-ours-a", events.Page("Pod", [], "a")),
        ("pods-ours-b", events.Page("Pod", [], "b")),
        ("pods-others", events.Page("Pod", [])),
        ("nodes", events.Page("Node", [])),
        ("services", events.Page("Service", [])),
        ("statefulsets", events.Page("StatefulSet", [])),
        ("persistentvolumes", events.Page("PersistentVolume", [])),
    ],
)
def test_an_empty_list_is_news_of_whose_objects_there_are_none(
    name: str, listed: events.Heard
) -> None:
    """Else what has gone meanwhile would stay for ever."""
    assert by_name("a", "b")[name].make_page_event([], is_first=True, is_last=True) == listed


def test_changes_of_pods_and_nodes_become_their_events() -> None:
    pod, node = make.pod(name="p"), make.node(name="n")
    table = sources.make_table(("evenkeel",), DEFAULT)
    pods, nodes = table[0], table[2]
    assert pods.make_change_event(pod, is_gone=False) == events.Seen(pod)
    assert pods.make_change_event(pod, is_gone=True) == events.Gone("Pod", pod.metadata.uid)
    assert nodes.make_change_event(node, is_gone=False) == events.Seen(node)
    assert nodes.make_change_event(node, is_gone=True) == events.Gone("Node", "n")


def test_all_that_is_watched_may_be_listed_and_watched() -> None:
    wanted = rights.list_needed("", "evenkeel")
    assert len(set(wanted)) == len(wanted)
    for source in sources.make_table(("a", "b"), DEFAULT):
        for verb in ("list", "watch"):
            assert Right(verb, source.kind.group, source.kind.plural) in wanted


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (kinds.PODS, "/api/v1/pods"),
        (kinds.POLICIES, "/apis/scheduling.evenkeel.dev/v1alpha1/balancepolicies"),
    ],
)
def test_a_kind_is_found_where_the_api_server_has_it(kind: Kind, path: str) -> None:
    assert kind.path == path


def test_queues_are_watched_where_they_are_managed_and_cost_nothing_elsewhere() -> None:
    plain = [source.name for source in sources.make_table(("a",), DEFAULT)]
    more = sources.make_table(("a",), DEFAULT, with_queues=True)
    names = [source.name for source in more]
    assert names[: len(plain)] == plain
    assert [source.kind for source in more[len(plain) :]] == list(kinds.OF_QUEUES)
    assert len(set(names)) == len(names)
    of_kai = sources.make_table(("a",), DEFAULT, with_kai=True)
    assert [source.kind for source in of_kai[len(plain) :]] == [kinds.KAI_QUEUES]


def test_a_config_map_is_read_by_itself_and_says_nothing_of_others() -> None:
    """So a Role for its name is enough, and no other ConfigMap is ever seen."""
    keys = "kube-system/hami-scheduler-device", "hami/device-plugin"
    plain = sources.make_table(("a",), DEFAULT)
    first, second = sources.make_table(("a",), DEFAULT, config_maps=keys)[len(plain) :]
    assert (first.name, second.name) == ("configmaps", "configmaps-2")
    assert first.find_path(first.kind) == "/api/v1/namespaces/kube-system/configmaps"
    assert second.find_path(second.kind) == "/api/v1/namespaces/hami/configmaps"
    assert first.params == {"fieldSelector": "metadata.name=hami-scheduler-device"}
    needed = rights.list_needed("x", "x", config_maps=keys)
    named = {one for one in needed if one.resource == "configmaps"}
    assert {(one.verb, one.namespace, one.name) for one in named} == {
        (verb, *key.split("/")) for verb in ("list", "watch") for key in keys
    }
    engine = Engine(Config(hami_config_map=keys[0], hami_plugin_config_map=keys[1]))
    inbox = Inbox(engine)
    found = [one.read(b'{"metadata":{"namespace":"%s","name":"%s"}}' % tuple(key.encode().split(b"/"))) for one, key in zip((first, second), keys, strict=True)]  # fmt: skip
    for source, one in zip((first, second), found, strict=True):
        inbox.put(source.make_page_event([one], is_first=True, is_last=True))
    inbox.put(first.make_page_event([], is_first=True, is_last=True))
    heard: list[events.Event] = []
    while event := inbox.take_next():
        engine.handle(event, 0.0)
        heard.append(event)
    assert [one for one in heard if isinstance(one, events.Gone)] == [
        events.Gone("ConfigMap", keys[0])
    ]


def test_a_kind_of_queues_is_read_in_the_newest_version_that_is_served() -> None:
    newer, older = kinds.WORKLOADS.list_versions()
    assert newer.path == "/apis/kueue.x-k8s.io/v1beta2/workloads"
    assert older.path == "/apis/kueue.x-k8s.io/v1beta1/workloads"
    assert kinds.PODS.list_versions() == (kinds.PODS,)


def given_rights(folder: str = "base") -> set[tuple[str, str, str]]:
    """What the manifests give: verb, group and resource."""
    text = (ROOT / "manifests" / folder / "rbac.yaml").read_text(encoding="utf-8")
    return {
        (verb, group, resource)
        for role in yaml.safe_load_all(text)
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_manifests_give_every_right_that_is_needed() -> None:
    """A line more in the table is a right more, and without it the first look at a cluster fails."""
    given = given_rights()
    for right in rights.list_needed("evenkeel-system", "evenkeel"):
        resource = "/".join(filter(None, (right.resource, right.subresource)))
        assert (right.verb, right.group, resource) in given


@pytest.mark.parametrize(
    ("folder", "given"),
    [
        ("queues", {"kueue_namespace": "kueue-system"}),
        ("kai-queues", {"with_kai": True}),
        ("queues-webhook", {"webhook": Served(WebhookSettings(), True, False)}),
        ("device-webhook", {"webhook": Served(WebhookSettings(), False, True)}),
        ("publish-parts", {"publishes_parts": True}),
        ("hami-config", {"config_maps": ("kube-system/hami-scheduler-device", "kube-system/x")}),
    ],
)
def test_what_queues_take_is_given_where_they_are_managed_and_nothing_else(
    folder: str, given: dict[str, Any]
) -> None:
    more = set(rights.list_needed("x", "x", **given)) - set(rights.list_needed("x", "x"))
    needed = {
        (one.verb, one.group, "/".join(filter(None, (one.resource, one.subresource))))
        for one in more
    }
    assert given_rights(folder) == needed


def test_the_process_that_moves_pods_may_list_what_a_plan_reads_and_nothing_else() -> None:
    """A kind more in the table is a right more: a plan without it would be of another cluster than the scheduler's."""
    read = {("list", kind.group, kind.plural) for kind in kinds.TABLE}
    needed = {
        (one.verb, one.group, "/".join(filter(None, (one.resource, one.subresource))))
        for one in rebalance.list_needed("evenkeel-system")
    }
    assert given_rights("rebalance") == read | needed


def test_one_more_replica_takes_three_rights_more() -> None:
    assert given_rights("rebalance-surge") == {
        ("patch", "apps", "deployments/scale"),
        ("patch", "", "pods/status"),
        ("list", "autoscaling", "horizontalpodautoscalers"),
    }


def test_rights_for_the_webhook_are_for_what_it_is_for() -> None:
    for served, wanted in (
        (Served(WebhookSettings(), True, False), {"evenkeel-webhook"}),
        (Served(WebhookSettings(), False, True), {"evenkeel-webhook-devices"}),
        (Served(WebhookSettings(certificates="/there"), True, True), set()),
    ):
        needed = rights.list_needed("x", "x", webhook=served)
        hooks = {one.name for one in needed if one.group == "admissionregistration.k8s.io"}
        assert hooks == wanted


def test_the_manifests_let_nothing_be_listed_that_the_table_does_not_name() -> None:
    """A line less is a right less: nobody grants what nothing reads."""
    listed = {(group, resource) for verb, group, resource in given_rights() if verb == "list"}
    # kopf looks for CRDs by itself.
    of_kopf = {("apiextensions.k8s.io", "customresourcedefinitions")}
    assert listed == {(kind.group, kind.plural) for kind in kinds.WATCHED} | of_kopf


def test_every_kind_that_is_watched_has_a_keeper_and_no_other() -> None:
    engine = Engine(Config())
    kept = (*kinds.WATCHED, *kinds.OF_QUEUES, *kinds.OF_KAI, kinds.CONFIG_MAPS)
    assert set(engine._keepers) == {kind.name for kind in kept}
    for kind in kept:
        assert engine.ask(MissingKeys(kind.name, ())) == []


def test_what_selects_pods_becomes_events_and_what_is_not_listed_any_more_is_gone() -> None:
    found = by_name("evenkeel")
    service = found["services"].read(
        b'{"metadata":{"namespace":"a","name":"web"},"spec":{"selector":{"app":"web"}}}'
    )
    seen = events.Seen(service)
    gone = events.Gone("Service", "a/web")
    assert found["services"].make_change_event(service, is_gone=False) == seen
    assert found["services"].make_change_event(service, is_gone=True) == gone
    engine = Engine(Config())
    inbox = Inbox(engine)
    of_set = steering.ReplicaSet(service.metadata, steering.SetSpec(service.selector))
    for event in (
        found["services"].make_page_event([service], is_first=True, is_last=True),
        events.Seen(of_set),
    ):
        inbox.put(event)
    while heard := inbox.take_next():
        engine.handle(heard, 0.0)
    assert inbox.lists_waiting == 0
    assert engine._cluster.peers.list_of_kind(PeerKind.SERVICE) == {("a", "web")}
    inbox.put(events.Page("Service", []))
    assert inbox.take_next() == events.ListBegins("Service")
    assert inbox.take_next() == gone
    engine.handle(gone, 0.0)
    assert engine._cluster.peers.list_of_kind(PeerKind.SERVICE) == set()
    assert engine._cluster.peers.list_of_kind(PeerKind.REPLICA_SET) == {("a", "web")}


def test_the_hint_to_dump_a_cluster_names_kinds_that_are_read() -> None:
    (named,) = re.findall(r"kubectl get (\S+) -A", foreign.DUMP)
    assert set(named.split(",")) <= {kind.plural for kind in kinds.TABLE}
