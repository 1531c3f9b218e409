"""The one table of all questions, and who answers each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.engine.answers import (
    auditing,
    backends,
    claims,
    defrag,
    explaining,
    kai_queues,
    measures,
    nodes,
    pods,
    queue_statuses,
    queues,
    simulating,
    space_quotas,
    volumes,
    waiting,
)
from scheduler.engine.answers.inside import Inside
from scheduler.engine.questions import auditing as of_auditing
from scheduler.engine.questions import claims as of_claims
from scheduler.engine.questions import defrag as of_defrag
from scheduler.engine.questions import explaining as of_explaining
from scheduler.engine.questions import kai_queues as of_kai_queues
from scheduler.engine.questions import measures as of_measures
from scheduler.engine.questions import nodes as of_nodes
from scheduler.engine.questions import pods as of_pods
from scheduler.engine.questions import queues as of_queues
from scheduler.engine.questions import simulating as of_simulating
from scheduler.engine.questions import space_quotas as of_spaces
from scheduler.engine.questions import volumes as of_volumes
from scheduler.engine.questions import waiting as of_waiting
from scheduler.engine.questions.contract import Question

ANSWERS: Mapping[type[Question[Any]], Callable[[Inside, Any], Any]] = {
    of_pods.KnownPod: pods.find_pod,
    of_pods.NamedPod: pods.get_pod,
    of_pods.KnownPods: pods.list_pods,
    of_pods.PodVersion: pods.read_version,
    of_pods.BindObjection: pods.find_objection,
    of_pods.MissingKeys: pods.find_missing,
    of_pods.ToldCardsMistake: pods.find_mistake,
    of_pods.HowPlaced: pods.say_how,
    of_pods.PlacedNote: pods.write_note,
    of_pods.NominatedNode: pods.find_nomination,
    of_pods.WhoGoverns: pods.find_governing,
    of_pods.GovernedPods: pods.count_governed,
    of_waiting.IsParked: waiting.is_parked,
    of_waiting.WaitOf: waiting.find_wait,
    of_waiting.LastingPlace: waiting.find_lasting_place,
    of_waiting.TriedInVain: waiting.find_tried,
    of_waiting.Queue: waiting.read_queue,
    of_waiting.ObjectsOf: waiting.list_objects,
    of_waiting.WhatWaits: waiting.list_unplaced,
    of_waiting.AllGroups: waiting.list_groups,
    of_waiting.QueueCounts: waiting.count_queue,
    of_waiting.WaitsByNamespace: waiting.sum_waits,
    of_queues.KnownQueues: queues.list_queues,
    of_queues.KnownWorkloads: queues.list_workloads,
    of_queues.PodsOfWorkload: queues.list_pods,
    of_queues.KnownQueue: queues.find_record,
    of_queues.WhyNoQuota: queues.explain_wait,
    of_queues.WaitersOf: queues.list_waiters,
    of_queues.QueuePath: queue_statuses.find_path,
    of_queues.ChecksToPass: queue_statuses.list_checks,
    of_queues.IsObjectInUse: queue_statuses.is_in_use,
    of_queues.StatusesOfQueues: queue_statuses.list_figures,
    of_queues.StatusesOfKaiQueues: queue_statuses.list_kai_figures,
    of_kai_queues.AllInKaiQueues: kai_queues.list_all,
    of_kai_queues.WhoGivesWay: kai_queues.find_givers,
    of_kai_queues.UsageOfKaiQueues: kai_queues.list_usage,
    of_nodes.KnownNode: nodes.find_node,
    of_nodes.KnownNodes: nodes.list_nodes,
    of_nodes.NodeCounts: nodes.count_nodes,
    of_nodes.DriverNotices: nodes.list_notices,
    of_nodes.CardDrivers: nodes.list_drivers,
    of_nodes.OfferedParts: nodes.sum_offered_parts,
    of_nodes.SharedGpus: backends.list_backends,
    of_spaces.SpaceQuotaStates: space_quotas.list_states,
    of_spaces.SpaceQuotaExcess: space_quotas.find_excess,
    of_claims.KnownResourceClaim: claims.find_claim,
    of_claims.CountedClaims: claims.count_claims,
    of_volumes.KnownClaim: volumes.find_claim,
    of_volumes.KnownVolume: volumes.find_volume,
    of_volumes.MovedDrivers: volumes.find_moved,
    of_simulating.MistakesOfWaiting: simulating.list_mistakes,
    of_simulating.MistakesOfGroups: simulating.list_group_mistakes,
    of_simulating.PodsByGroup: simulating.list_by_group,
    of_simulating.NextDecision: simulating.look_ahead,
    of_simulating.SuitedNodes: simulating.list_suited,
    of_simulating.HeldCards: simulating.list_held,
    of_simulating.CardIndices: simulating.find_indices,
    of_explaining.ExplainPod: explaining.explain_pod,
    of_explaining.ExplainNode: explaining.explain_node,
    of_explaining.OutlookOf: explaining.try_group,
    of_explaining.ExplainGroup: explaining.explain_group,
    of_auditing.TypicalPods: auditing.find_typical,
    of_auditing.FiguresBy: auditing.measure_by,
    of_auditing.JudgedNodes: auditing.list_judged,
    of_auditing.EmptyNodes: auditing.count_empty,
    of_auditing.SharesOf: auditing.share_out,
    of_auditing.GroupOfPods: auditing.find_groups,
    of_auditing.DevicesOn: auditing.read_devices,
    of_auditing.UncountedOffer: auditing.list_uncounted,
    of_auditing.WrongLabels: auditing.compare_labels,
    of_auditing.ReturnOf: auditing.judge_return,
    of_auditing.BestNodesFor: auditing.find_best,
    of_auditing.UnusedClaimDevices: auditing.find_unused,
    of_defrag.PlanOfMoves: defrag.plan_moves,
    of_measures.Departures: measures.recall_departures,
    of_measures.Totals: measures.recount,
    of_measures.Devices: measures.copy_devices,
    of_measures.Holds: measures.copy_holds,
    of_measures.Instances: measures.copy_parts,
    of_measures.Stranded: measures.measure_stranded,
    of_measures.Fragments: measures.read_fragments,
    of_measures.ChangedNodes: measures.read_changed,
    of_measures.UseByNode: measures.read_use,
    of_measures.OccupiedNodes: measures.count_occupied,
}
