"""A file in kube-scheduler's form: every refusal, by field."""

from typing import Any

import pytest
import yaml

from scheduler import config
from scheduler.errors import BadInput

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = "profiles[0].pluginConfig[0].args"


def args(name: str, said: str) -> str:
    return f"profiles: [{{pluginConfig: [{{name: {name}, args: {said}}}]}}]"


def points(said: str) -> str:
    return f"profiles: [{{plugins: {said}}}]"


FIT = "NodeResourcesFit"
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("extenders: [{urlPrefix: http://x}]", "extenders", "not supported"),
        ("percentageOfNodesToScore: 50", "percentageOfNodesToScore", "scores all nodes"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore", "0..100"),
        ("profiles: [{percentageOfNodesToScore: 1}]", "profiles[0].percentageOfNodesToScore", "all"),
        ("clientConnection: {kubeconfig: /a}", "clientConnection.kubeconfig", "--kubeconfig"),
        ("leaderElection: {leaderElect: true}", "leaderElection", "flags"),
        ("leaderElection: {resourceName: mine}", "leaderElection", "flags"),
        ("delayCacheUntilActive: true", "delayCacheUntilActive", "not supported"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds", "1.."),
        ("podMaxBackoffSeconds: x", "podMaxBackoffSeconds", "1.."),
        ("podInitialBackoffSeconds: 20", "podMaxBackoffSeconds", "must be at least podInitialBackoffSeconds, which is 20"),
        ("podLimits: {}", "podLimits", "unknown field of KubeSchedulerConfiguration"),
        ("profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName", "is required"),
        ("profiles: [{schedulerName: ''}]", "profiles[0].schedulerName", "is required"),
        ("profiles: [{schedulerName: a b}]", "profiles[0].schedulerName", "is not a name"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", "profiles[1].schedulerName", "twice"),
        ("profiles: [{placement: {}}]", "profiles[0].placement", "unknown field"),
        ("profiles: {}", "profiles", "must be a list"),
        (points("{score: {all: []}}"), "profiles[0].plugins.score.all", "unknown field"),
        (points("{scoring: {}}"), "profiles[0].plugins.scoring", "unknown field"),
        (
            points("{score: {enabled: [{name: MyPlugin}]}}"),
            "profiles[0].plugins.score.enabled[0].name",
            "'MyPlugin' is not a plugin that Evenkeel has",
        ),
        (
            points("{filter: {disabled: [{name: EBSLimits}]}}"),
            "profiles[0].plugins.filter.disabled[0].name",
            "not a plugin",
        ),
        (
            points("{score: {enabled: [{name: NodePorts}]}}"),
            "profiles[0].plugins.score.enabled[0].name",
            "NodePorts does nothing at score",
        ),
        (
            points("{score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}"),
            "profiles[0].plugins.score.enabled[1].name",
            "appears twice",
        ),
        (
            points("{score: {enabled: [{name: ImageLocality, weight: -1}]}}"),
            "profiles[0].plugins.score.enabled[0].weight",
            "0..2147483647",
        ),
        (
            points("{queueSort: {disabled: [{name: '*'}]}}"),
            "profiles[0].plugins.queueSort",
            "PrioritySort cannot be disabled",
        ),
        (
            points("{queueSort: {enabled: [{name: Coscheduling}]}}"),
            "profiles[0].plugins.queueSort.enabled[0].name",
            "not a plugin",
        ),
        (
            points("{multiPoint: {disabled: [{name: SchedulingGates}]}}"),
            "profiles[0].plugins.preEnqueue",
            "SchedulingGates cannot",
        ),
        (
            points("{bind: {disabled: [{name: DefaultBinder}]}}"),
            "profiles[0].plugins.bind",
            "DefaultBinder cannot",
        ),
        (
            points("{preFilter: {disabled: [{name: NodePorts}]}}"),
            "profiles[0].plugins.preFilter",
            "NodePorts must be enabled here, because it is enabled at filter",
        ),
        (
            points("{preScore: {disabled: [{name: TaintToleration}]}}"),
            "profiles[0].plugins.preScore",
            "because it is enabled at score",
        ),
        (
            points("{filter: {disabled: [{name: NodeAffinity}]}}"),
            "profiles[0].plugins.filter",
            "NodeAffinity must be enabled at preFilter and filter, or at neither",
        ),
        (
            points("{reserve: {disabled: [{name: VolumeBinding}]}}"),
            "profiles[0].plugins.reserve",
            "VolumeBinding must be enabled at filter and reserve",
        ),
        ("profiles: [{pluginConfig: [{name: NodePorts}]}]", "profiles[0].pluginConfig[0].name", "no arguments"),
        ("profiles: [{pluginConfig: [{name: Mine}]}]", "profiles[0].pluginConfig[0].name", "not a plugin"),
        (
            f"profiles: [{{pluginConfig: [{{name: {FIT}}}, {{name: {FIT}}}]}}]",
            "profiles[0].pluginConfig[1].name",
            "appears twice",
        ),
        (args(FIT, "{kind: Other}"), f"{ARGS}.kind", "NodeResourcesFitArgs"),
        (args(FIT, "{apiVersion: v1}"), f"{ARGS}.apiVersion", "kubescheduler.config.k8s.io/v1"),
        (args(FIT, "{strategy: {}}"), f"{ARGS}.strategy", "unknown field"),
        (args(FIT, "{ignoredResources: ['a b']}"), f"{ARGS}.ignoredResources[0]", "name"),
        (args(FIT, "{ignoredResourceGroups: [a.b/c]}"), f"{ARGS}.ignoredResourceGroups[0]", "a '/'"),
        (args(FIT, "{scoringStrategy: {}}"), f"{ARGS}.scoringStrategy.type", "LeastAllocated"),
        (
            args(FIT, "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}"),
            f"{ARGS}.scoringStrategy.resources[0].weight",
            "1..100",
        ),
        (
            args(FIT, "{scoringStrategy: {type: MostAllocated, resources: [{weight: 1}]}}"),
            f"{ARGS}.scoringStrategy.resources[0].name",
            "name of a resource",
        ),
        (
            args(FIT, "{scoringStrategy: {type: RequestedToCapacityRatio}}"),
            f"{ARGS}.scoringStrategy.requestedToCapacityRatio",
            "must be set",
        ),
        (
            args(FIT, "{scoringStrategy: {type: LeastAllocated, requestedToCapacityRatio: {}}}"),
            f"{ARGS}.scoringStrategy.requestedToCapacityRatio",
            "for no other type",
        ),
        (
            args(
                FIT,
                "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape:"
                " [{utilization: 9, score: 1}, {utilization: 9, score: 2}]}}}",
            ),
            f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape",
            "rise strictly",
        ),
        (
            args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"),
            f"{ARGS}.resources[0].weight",
            "1..1",
        ),
        (
            args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: cpu}]}"),
            f"{ARGS}.resources[1].name",
            "appears twice",
        ),
        (args("InterPodAffinity", "{hardPodAffinityWeight: 101}"), f"{ARGS}.hardPodAffinityWeight", "0..100"),
        (
            args("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: 1}"),
            f"{ARGS}.ignorePreferredTermsOfExistingPods",
            "neither true nor false",
        ),
        (args("PodTopologySpread", "{defaultingType: Some}"), f"{ARGS}.defaultingType", "System, List"),
        (
            args("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1}]}"),
            f"{ARGS}.defaultingType",
            "must be List",
        ),
        (
            args(
                "PodTopologySpread",
                "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            ),
            f"{ARGS}.defaultConstraints[0].maxSkew",
            "1..",
        ),
        (
            args("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{labelSelector: {}}]}"),
            f"{ARGS}.defaultConstraints[0].labelSelector",
            "deduced",
        ),
        (
            args("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: x, topologyKey: a}]}"),
            f"{ARGS}.defaultConstraints[0]",
            "int",
        ),
        (
            args("NodeAffinity", f"{{addedAffinity: {{{TERMS}: {{terms: []}}}}}}"),
            f"{ARGS}.addedAffinity.{TERMS}.terms",
            "unknown field",
        ),
        (
            args(
                "NodeAffinity",
                f"{{addedAffinity: {{{TERMS}: {{nodeSelectorTerms: [{{matchExpressions: [{{key: a, operator: In}}]}}]}}}}}}",
            ),
            f"{ARGS}.addedAffinity.{TERMS}.nodeSelectorTerms[0].matchExpressions[0].values",
            "must be set",
        ),
        (args("VolumeBinding", "{bindTimeoutSeconds: -1}"), f"{ARGS}.bindTimeoutSeconds", "0.."),
        (args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"), f"{ARGS}.minCandidateNodesPercentage", "0..100"),
        (
            args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
            f"{ARGS}.minCandidateNodesPercentage",
            "must not be 0",
        ),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_its_field(text: str, field: str, problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        config.parse_config(yaml.safe_load(HEAD + text))
    assert caught.value.field == field
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"kind": "KubeSchedulerConfiguration"}, "apiVersion"),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1"}, "kind"),
        ({"kind": "Policy", "apiVersion": "v1"}, "kind"),
        (
            {
                "kind": "KubeSchedulerConfiguration",
                "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
            },
            "apiVersion",
        ),
    ],
)
def test_another_kind_or_version_is_refused(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        config.parse_config(raw)
    assert caught.value.field == field
