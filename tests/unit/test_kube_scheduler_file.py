"""A file in kube-scheduler's form: what it comes to, by the examples of its documentation."""

import pytest
import yaml

from scheduler import config
from scheduler.api import kube_plugins
from scheduler.api.kube_plugins import (
    AddedAffinity,
    FitScore,
    KubePlugins,
    Preemption,
    Strategy,
    VolumeBinding,
)
from scheduler.api.kubescheduler.points import PLUGINS
from scheduler.api.placement import Mode, Placement
from scheduler.api.pods.spread import Constraint
from scheduler.api.selectors import NOTHING, NodeTerm, Requirement
from scheduler.config import Config

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SCORES = frozenset(name for name, at in PLUGINS.items() if "score" in at)


def read(text: str) -> Config:
    return config.parse_config(yaml.safe_load(HEAD + text))


def plugins(text: str) -> KubePlugins:
    """Of the one profile that says this, at the margin."""
    lines = text.strip("\n").splitlines()
    found = read("profiles:\n- schedulerName: one\n" + "".join(f"  {line}\n" for line in lines))
    assert found.scheduler_names == ("one",)
    assert found.placement.mode == Mode.KUBE_SCHEDULER
    return found.placement.kube


def weights(text: str) -> dict[str, int]:
    return dict(plugins(text).weights)


def test_a_file_that_says_nothing_is_the_default_profile_of_kube_scheduler() -> None:
    found = read("")
    assert found == Config(
        scheduler_name="default-scheduler", placement=Placement(mode=Mode.KUBE_SCHEDULER)
    )
    assert found.placement.kube == kube_plugins.DEFAULT
    for empty in ("profiles: []", "profiles: [{}]", "profiles:\n- plugins: {}\n  pluginConfig: []"):
        assert read(empty) == found


def test_what_says_how_the_process_works_is_passed_over_where_nothing_has_to_be_done() -> None:
    text = """
parallelism: 4
percentageOfNodesToScore: 100
enableProfiling: false
enableContentionProfiling: false
clientConnection: {qps: 100, burst: 200, contentType: application/json, kubeconfig: ""}
leaderElection: {leaderElect: false, resourceName: mine}
delayCacheUntilActive: false
extenders: []
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 60
"""
    found = read(text)
    assert (found.backoff_seconds, found.backoff_max_seconds) == (2.0, 60.0)
    assert read("podMaxBackoffSeconds: 1").backoff_max_seconds == 1.0


def test_several_profiles_each_with_its_own_plugins() -> None:
    """The example of "Multiple profiles"."""
    found = read("""
profiles:
- schedulerName: default-scheduler
- schedulerName: no-scoring-scheduler
  percentageOfNodesToScore: 0
  plugins:
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}
""")
    assert found.scheduler_names == ("default-scheduler", "no-scoring-scheduler")
    assert found.placement.plugins is None
    other = found.profile("no-scoring-scheduler").placement
    assert other.mode == Mode.KUBE_SCHEDULER
    assert dict(other.kube.weights) == dict.fromkeys(SCORES, 0)
    assert not other.kube.not_asked


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("", {}, id="nothing said: each has its own"),
        pytest.param(
            "plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 7}]}}",
            {"NodeResourcesFit": 7},
            id="a default one is given another weight",
        ),
        pytest.param(
            "plugins: {score: {enabled: [{name: TaintToleration}, {name: NodeAffinity, weight: 0}]}}",
            {"TaintToleration": 1, "NodeAffinity": 1},
            id="no weight and 0 are 1, not the own",
        ),
        pytest.param(
            "plugins: {multiPoint: {enabled: [{name: PodTopologySpread}, {name: ImageLocality, weight: 3}]}}",
            {"PodTopologySpread": 1, "ImageLocality": 3},
            id="multiPoint likewise",
        ),
        pytest.param(
            "plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 3}]},"
            " score: {enabled: [{name: ImageLocality, weight: 5}]}}",
            {"ImageLocality": 5},
            id="the point itself comes before multiPoint",
        ),
        pytest.param(
            "plugins: {score: {disabled: [{name: ImageLocality}]}}",
            {"ImageLocality": 0},
            id="one is disabled at its point",
        ),
        pytest.param(
            "plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}",
            {"ImageLocality": 0},
            id="or everywhere",
        ),
        pytest.param(
            "plugins: {score: {disabled: [{name: ImageLocality}], enabled: [{name: ImageLocality, weight: 4}]}}",
            {"ImageLocality": 4},
            id="enabled comes before disabled",
        ),
        pytest.param(
            "plugins: {multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: ImageLocality}]}}",
            {"ImageLocality": 1},
            id="also in multiPoint",
        ),
        pytest.param(
            "plugins: {multiPoint: {disabled: [{name: ImageLocality}]},"
            " score: {enabled: [{name: ImageLocality, weight: 2}]}}",
            {"ImageLocality": 2},
            id="off everywhere, on at its point",
        ),
        pytest.param(
            "plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 9}]},"
            " score: {disabled: [{name: ImageLocality}]}}",
            {"ImageLocality": 0},
            id="on everywhere, off at its point",
        ),
        pytest.param(
            'plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 2}]}}',
            {**dict.fromkeys(SCORES, 0), "NodeResourcesFit": 2},
            id="all off but one",
        ),
        pytest.param(
            "plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: SchedulingGates}, {name: PrioritySort},"
            " {name: DefaultBinder}, {name: TaintToleration, weight: 3}]}}",
            {**dict.fromkeys(SCORES, 0), "TaintToleration": 3},
            id="all off everywhere but some",
        ),
    ],
)
def test_weights_come_out_as_kube_scheduler_merges_them(text: str, wanted: dict[str, int]) -> None:
    assert weights(text) == wanted


def test_filters_that_are_disabled_are_not_asked() -> None:
    assert plugins("plugins: {filter: {disabled: [{name: TaintToleration}]}}").not_asked == {
        "TaintToleration"
    }
    found = plugins("plugins: {multiPoint: {disabled: [{name: NodeAffinity}, {name: NodePorts}]}}")
    assert found.not_asked == {"NodeAffinity", "NodePorts"}
    assert dict(found.weights) == {"NodeAffinity": 0}
    found = plugins("""
plugins:
  preFilter: {disabled: [{name: "*"}]}
  filter: {disabled: [{name: "*"}], enabled: [{name: NodeUnschedulable}]}
  score: {disabled: [{name: VolumeBinding}]}
  reserve: {disabled: [{name: VolumeBinding}]}
  preBind: {disabled: [{name: VolumeBinding}]}
""")
    filters = {name for name, at in PLUGINS.items() if "filter" in at}
    assert found.not_asked == filters - {"NodeUnschedulable"}


def test_a_profile_without_preemption_evicts_nobody() -> None:
    found = read("""
profiles:
- schedulerName: never
  plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}
- schedulerName: some
  pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 5}
""")
    assert (found.preemption, found.profile("some").preemption) == (False, True)
    assert found.profile("some").placement.kube.preemption == Preemption(0, 5)
    assert found.profile("never").placement.plugins is None


def test_the_strategy_of_node_resources_fit() -> None:
    """The example of "Resource bin packing"; a weight that is not said, or 0, is 1."""
    found = plugins("""
pluginConfig:
- name: NodeResourcesFit
  args:
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: NodeResourcesFitArgs
    ignoredResources: [example.com/foo]
    ignoredResourceGroups: [example.org]
    scoringStrategy:
      resources: [{name: intel.com/foo, weight: 3}, {name: intel.com/bar, weight: 0}, {name: cpu}]
      requestedToCapacityRatio:
        shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
      type: RequestedToCapacityRatio
- name: NodeResourcesBalancedAllocation
  args: {resources: [{name: cpu, weight: 1}, {name: memory}, {name: nvidia.com/gpu}]}
""")
    resources = (("intel.com/foo", 3), ("intel.com/bar", 1), ("cpu", 1))
    assert found.fit == FitScore(Strategy.RATIO, resources, ((0, 0), (100, 10)))
    assert found.balanced == ("cpu", "memory", "nvidia.com/gpu")
    asked = ("cpu", "example.com/foo", "example.org/any", "example.net/foo", "hugepages-2Mi")
    assert [found.is_ignored(one) for one in asked] == [False, True, True, False, False]
    most = (
        "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]"
    )
    assert plugins(most).fit == FitScore(Strategy.MOST)
    assert plugins("pluginConfig: [{name: NodeResourcesFit}]") == kube_plugins.DEFAULT


def test_default_constraints() -> None:
    """The example of "Cluster-level default constraints"; an empty list is no spread at all."""
    found = plugins("""
pluginConfig:
- name: PodTopologySpread
  args:
    defaultConstraints:
    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
    - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}
    defaultingType: List
""")
    assert found.spread == (
        Constraint("topology.kubernetes.io/zone", 1, hard=False, selector=NOTHING),
        Constraint("rack", 2, hard=True, selector=NOTHING, min_domains=3, honors_taints=True),
    )
    none = "pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List}}]"
    assert plugins(none).spread == ()
    system = "pluginConfig: [{name: PodTopologySpread, args: {defaultingType: System}}]"
    assert plugins(system).spread is None


def test_added_affinity() -> None:
    """The example of "Node affinity per scheduling profile"; an empty term matches no node and counts for nothing."""
    found = plugins("""
pluginConfig:
- name: NodeAffinity
  args:
    addedAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: scheduler-profile, operator: In, values: [foo]}]
        - {}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, preference: {matchFields: [{key: metadata.name, operator: In, values: [n]}]}}
      - {weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}
""")
    assert found.added_affinity == AddedAffinity(
        (NodeTerm((Requirement("scheduler-profile", "In", ("foo",)),)),),
        ((5, NodeTerm((), (Requirement("metadata.name", "In", ("n",)),))),),
    )
    nowhere = """
pluginConfig:
- name: NodeAffinity
  args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
"""
    assert plugins(nowhere).added_affinity == AddedAffinity(required=())


def test_pod_affinity_and_volumes() -> None:
    found = plugins("""
pluginConfig:
- name: InterPodAffinity
  args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}
- name: VolumeBinding
  args: {bindTimeoutSeconds: 0, shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
""")
    assert (found.required_weight, found.only_own_preferences) == (0, True)
    assert found.volume_binding == VolumeBinding(0, ((0, 0), (100, 10)))


def test_equal_profiles_are_equal_though_each_is_counted_once() -> None:
    """A profile's words are part of every pod's shape: pods of profiles that say the same share one."""
    one = plugins("plugins: {score: {disabled: [{name: ImageLocality}]}}")
    other = plugins("plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}")
    assert one == other
    assert hash(one) == hash(other) == hash(one)
    assert one != kube_plugins.DEFAULT
