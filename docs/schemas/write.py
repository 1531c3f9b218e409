"""Write the JSON Schemas of what the commands print: ``python -m docs.schemas.write``.

Strict: no object may have a key that its schema does not name. What is called by names of the cluster, such as of
nodes or resources, is a map of one kind of value.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scheduler.printing import SCHEMA_VERSION

Schema = dict[str, Any]
HERE = Path(__file__).parent

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
NOTHING: Schema = {"type": "null"}


def one(**fields: Schema) -> Schema:
    """An object with these keys, all of them; those that end with ``_`` may be left out."""
    named = {name.removesuffix("_"): schema for name, schema in fields.items()}
    required = [name for name in fields if not name.endswith("_")]
    found = {"type": "object", "properties": named, "required": required}
    return found | {"additionalProperties": False}


def named(**fields: Schema) -> Schema:
    """As ``one``, for keys with dashes."""
    return one(**{name.replace("_", "-"): schema for name, schema in fields.items()})


def many(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def by_name(of: Schema) -> Schema:
    """A map by names of the cluster."""
    return {"type": "object", "additionalProperties": of}


def maybe(of: Schema) -> Schema:
    """The same or null."""
    return {"anyOf": [of, NOTHING]}


def words(*allowed: str) -> Schema:
    """One of some words."""
    return {"enum": list(allowed)}


NAMES = many(TEXT)
BY_KIND = by_name(NAMES)
QUEUE = one(
    name=TEXT,
    kind=words("ClusterQueue", "Cohort"),
    parent=maybe(TEXT),
    weight=NUMBER,
    share=maybe(NUMBER),
    dominantResource=maybe(TEXT),
    waiting=WHOLE,
    parked=WHOLE,
    holding=WHOLE,
    admitted=WHOLE,
    uses=many(
        one(
            flavor=TEXT,
            resource=TEXT,
            nominal=TEXT,
            used=TEXT,
            borrowed=TEXT,
            lent=TEXT,
            available=TEXT,
        )
    ),
    inactive=many(one(reason=TEXT, message=TEXT)),
    remarks=many(TEXT),
)
USES = many(one(flavor=TEXT, resource=TEXT, amount=TEXT))
WORKLOAD = one(
    namespace=TEXT,
    name=TEXT,
    job=maybe(one(kind=TEXT, name=TEXT)),
    localQueue=TEXT,
    queue=maybe(TEXT),
    priority=WHOLE,
    state=words("admitted", "running", "waits", "held"),
    position=maybe(WHOLE),
    podSets=many(one(name=TEXT, count=WHOLE, flavors=by_name(TEXT))),
    uses=USES,
    preempted=maybe(one(by=TEXT, reason=TEXT)),
    evicted=maybe(one(reason=TEXT, message=TEXT)),
    reason=TEXT,
    message=TEXT,
)
FIGURES = one(total=WHOLE, used=WHOLE, free=WHOLE)
LEFT = one(memoryMiB=WHOLE, cores=WHOLE, sharers=WHOLE)
TAINT = {"key": TEXT, "value": TEXT, "effect": TEXT}
DEVICE = one(id=TEXT, index=maybe(WHOLE), memoryMiB=WHOLE, cores=WHOLE)
USE_OF_DEVICE = one(
    claim=TEXT, request=TEXT, driver=TEXT, pool=TEXT, device=TEXT, consumed=by_name(TEXT)
)
POINTS = by_name(NUMBER)
SCORES = {
    "raw": by_name(maybe(NUMBER)),
    "scores": POINTS,
    "weighted": POINTS,
    "total": maybe(NUMBER),
}
LOSS = one(
    unit=TEXT,
    total=NUMBER,
    terms=POINTS,
    places=many(one(asks=by_name(WHOLE), text=TEXT, lost=NUMBER)),
)


KAI_USE = one(
    resource=words("cpu", "memory", "gpu"), quota=TEXT, limit=TEXT, weight=NUMBER, fairShare=TEXT, held=TEXT,
    nonPreemptible=TEXT, requested=TEXT,
)  # fmt: skip
KAI_QUEUE = one(
    name=TEXT, parent=maybe(TEXT), depth=WHOLE, priority=WHOLE, problem=maybe(TEXT), overQuota=FLAG,
    uses=many(KAI_USE),
)  # fmt: skip


def simulate() -> Schema:
    """Where pods would go; with several modes a result for each."""
    owner = one(kind=TEXT, name=TEXT)
    victim = one(namespace=TEXT, name=TEXT, uid=TEXT, node=TEXT)
    node = one(
        feasible=FLAG, status=words("fit", "unschedulable", "unresolvable"), reasons=NAMES, **SCORES
    )
    before = one(id=TEXT, index=WHOLE, free=LEFT, total=LEFT)
    pod = one(
        namespace=TEXT, name=TEXT, uid=TEXT, owner=maybe(owner), displacedFrom=maybe(TEXT), file=TEXT, own=FLAG,
        ofChange=FLAG, counts=FLAG, node=maybe(TEXT), annotations=by_name(TEXT), devices=many(DEVICE), claims=many(USE_OF_DEVICE), message=TEXT, unschedulable=maybe(TEXT),
        victims=many(victim), nominated=maybe(TEXT), group=maybe(TEXT),
        nodes_=by_name(node), weights_=by_name(WHOLE), cards_=maybe(one(by=TEXT, before=many(before))),
    )  # fmt: skip
    group = one(
        kind=TEXT, namespace=TEXT, name=TEXT, members=WHOLE, minimum=WHOLE, placed=WHOLE,
        state=words("placed", "partly placed", "waits", "held"),
        domain=maybe(one(label=TEXT, values=NAMES)), message=TEXT,
    )  # fmt: skip
    of_queue = one(
        kind=words("ClusterQueue", "Cohort"), name=TEXT, before=maybe(QUEUE), after=maybe(QUEUE)
    )
    quota = maybe(one(queue=maybe(TEXT), uses=USES))
    of_workload = one(
        namespace=TEXT, name=TEXT, job=maybe(one(kind=TEXT, name=TEXT)), change=words("gains", "loses", "moves", "changes"),
        before=quota, after=quota, by=maybe(TEXT), reason=TEXT, message=TEXT,
    )  # fmt: skip
    of_kai_queue = one(name=TEXT, before=maybe(KAI_QUEUE), after=maybe(KAI_QUEUE))
    of_pod = one(
        namespace=TEXT, name=TEXT, change=words("gains", "loses"),
        node=maybe(TEXT), by=maybe(TEXT), message=TEXT,
    )  # fmt: skip
    fields = {
        "pods": many(pod),
        "groups": many(group),
        "queues": many(QUEUE),
        "workloads": many(WORKLOAD),
        "queueChanges": maybe(
            one(by=words("files", "changes"), queues=many(of_queue), workloads=many(of_workload))
        ),
        "kaiQueues": many(KAI_QUEUE),
        "kaiQueueChanges": maybe(
            one(by=words("files", "changes"), queues=many(of_kai_queue), pods=many(of_pod))
        ),
        "summary": one(nodes=WHOLE, pods=WHOLE, scheduled=WHOLE, pending=WHOLE),
        "warnings": NAMES,
        "mistakes": many(
            one(object=TEXT, field=TEXT, problem=TEXT, file=TEXT, place=TEXT, counts=FLAG)
        ),
        "passedOver": by_name(WHOLE),
        "unknownWorkloads": many(one(apiVersion=TEXT, kind=TEXT, count=WHOLE)),
        "suspended": BY_KIND,
        "finished": BY_KIND,
        "unsuited": BY_KIND,
        "removed": many(one(namespace=TEXT, name=TEXT, owner=owner, node=maybe(TEXT))),
        "ownFiles": NAMES,
        "ownUnsuited": many(one(kind=TEXT, namespace=TEXT, name=TEXT, reason=TEXT)),
        "changed": FLAG,
    }
    return {"oneOf": [_answer(**fields), _answer(modes=by_name(one(**fields)))]}


def explain() -> Schema:
    """Why a pod or a group waits or went where it went, or what is on a node."""
    card = {
        "index": WHOLE, "id": TEXT, "model": TEXT, "mode": TEXT, "numa": WHOLE, "healthy": FLAG, "closed": FLAG,
        "memoryMiB": FIGURES, "cores": FIGURES, "sharers": FIGURES,
    }  # fmt: skip
    refusing = one(**card, refusal=maybe(TEXT), wouldDo=FLAG)
    request = {
        "request": TEXT, "resource": maybe(TEXT), "class": TEXT, "count": maybe(WHOLE), "devices": WHOLE, "wouldDo": WHOLE,
    }  # fmt: skip
    given = one(request=TEXT, driver=TEXT, pool=TEXT, name=TEXT, admin=FLAG, consumed=by_name(TEXT))
    refused = words("capacity", "counters", "inUse", "taint", "unlike", "selectorFails")
    of_claim = one(
        entry=maybe(TEXT), claim=maybe(TEXT), template=maybe(TEXT), devices=many(given),
        requests=many(one(
            **request, refused=by_name(WHOLE), most=maybe(one(node=TEXT, wouldDo=WHOLE)),
        )),
    )  # fmt: skip
    near_claim = one(
        claim=maybe(TEXT), **request,
        refusals=many(one(
            why=refused, text=TEXT, holders=many(one(claim=TEXT, pods=NAMES)), devices=WHOLE, names=NAMES,
        )),
        nearest=maybe(one(device=TEXT, lacks=TEXT)),
    )  # fmt: skip
    constraint = one(
        claim=TEXT, constraint=WHOLE, attribute=TEXT, distinct=FLAG, devices=WHOLE, wouldDo=WHOLE, without=WHOLE, text=TEXT,
    )  # fmt: skip
    nearest = one(
        node=TEXT, cordoned=FLAG, taints=many(one(**TAINT)),
        lacks=many(one(rule=TEXT, reasons=NAMES, counted=NAMES, evictionCouldHelp=FLAG)),
        resources=many(one(resource=TEXT, requested=WHOLE, free=WHOLE, total=WHOLE)),
        cardsRequested=WHOLE, cards=many(refusing),
        containers=many(one(names=NAMES, cardsRequested=WHOLE, wouldDo=WHOLE, refusals=many(maybe(TEXT)))),
        together=maybe(one(container=TEXT, after=NAMES, cardsRequested=WHOLE, wouldDo=WHOLE)),
        claims=many(near_claim), constraints=many(constraint),
    )  # fmt: skip
    who = one(namespace=TEXT, name=TEXT, node=TEXT, priority=WHOLE)

    def step(do: str, **fields: Schema) -> Schema:
        return one(do={"const": do}, **fields)

    steps: Schema = {
        "oneOf": [
            step(
                "requestLess",
                resource=TEXT,
                requested=WHOLE,
                atMost=WHOLE,
                perContainer=FLAG,
                containers=NAMES,
            ),
            step("drop", field=TEXT, value=TEXT),
            step("tolerate", taint=one(**TAINT)),
            step("bringBack", node=TEXT, because=NAMES),
            step("wait", pods=many(who)),
            step("end", node=TEXT, pods=many(who)),
            step(
                "changeClaim",
                claim=TEXT,
                request=maybe(TEXT),
                change=words("count", "capacity", "selector", "toleration", "constraint"),
            ),
            step("freeClaim", claim=TEXT, pods=many(who)),
        ]
    }
    best = one(
        node=TEXT, place=WHOLE, preference=WHOLE, **SCORES, loss=maybe(LOSS),
        after=many(one(resource=TEXT, used=WHOLE, total=WHOLE)),
    )  # fmt: skip
    reason = one(rule=TEXT, reason=TEXT, nodes=WHOLE, evictionCouldHelp=WHOLE, names=NAMES)
    pod = _answer(
        kind={"const": "Pod"}, namespace=TEXT, name=TEXT, uid=TEXT, scheduler=maybe(TEXT), priority=WHOLE,
        node=maybe(TEXT), state=words(
            "waits", "preempts", "fits", "bound", "gated", "held", "queued", "deleting"
        ),
        message=TEXT, remarks=NAMES,
        queue=maybe(
            one(place=maybe(WHOLE), of=WHOLE, ahead=NAMES, gates=NAMES, heldBy=maybe(TEXT))
        ),
        problem=maybe(TEXT), ofPod=maybe(TEXT), nodes=one(total=WHOLE, fitting=WHOLE, names=NAMES),
        reasons=many(reason), details=NAMES, claims=many(of_claim),
        preemption=maybe(one(node=TEXT, victims=many(who), notDone=maybe(TEXT))),
        nearest=maybe(nearest), advice=many(one(steps=many(steps), nodes=WHOLE, names=NAMES, text=TEXT)),
        now=maybe(one(node=TEXT, devices=many(DEVICE), claims=many(given))), best=many(best), weights=by_name(WHOLE),
        objective=words("", "spread", "pack"), group=maybe(one(name=TEXT, fits=FLAG, message=TEXT)),
    )  # fmt: skip
    holder = one(pod=TEXT, memoryMiB=WHOLE, cores=WHOLE, sharers=WHOLE)
    group = one(
        fits=FLAG, reasons=NAMES, evictionCouldHelp=FLAG, short=by_name(one(leastRequested=WHOLE, free=WHOLE)),
        pods=WHOLE, names=NAMES,
    )  # fmt: skip
    node = _answer(
        kind={"const": "Node"}, name=TEXT, cordoned=FLAG, silent=FLAG, taints=many(one(**TAINT, isState=FLAG)),
        resources=many(one(resource=TEXT, total=WHOLE, used=WHOLE, free=WHOLE, gpuPart=NUMBER)),
        cards=many(one(family=TEXT, **card, holders=many(holder))),
        pools=many(one(
            driver=TEXT, pool=TEXT, devices=WHOLE, inUse=WHOLE, free=WHOLE, tainted=WHOLE,
            problem=maybe(words("invalid", "incomplete")),
        )),
        devices=many(one(
            driver=TEXT, pool=TEXT, name=TEXT, shared=FLAG, taints=many(one(**TAINT)), canBeHad=FLAG,
            capacities=many(one(name=TEXT, total=TEXT, free=TEXT)), holders=many(one(claim=TEXT, pods=NAMES)),
        )),
        counters=many(one(
            driver=TEXT, pool=TEXT, set=TEXT, counters=by_name(one(total=TEXT, free=TEXT)), inUse=NAMES, canBeCut=NAMES,
        )),
        pods=many(one(
            namespace=TEXT, name=TEXT, scheduler=maybe(TEXT), priority=WHOLE, deleting=FLAG, requests=by_name(WHOLE),
        )),
        waiting=one(pods=WHOLE, lookedAt=WHOLE, held=NAMES, groups=many(group)),
    )  # fmt: skip
    whose = maybe(one(
        part=TEXT, rule=TEXT, required=maybe(TEXT), preferred=NAMES, levels=NAMES,
    ))  # fmt: skip
    closest = one(values=NAMES, nodes=WHOLE, fitting=WHOLE, of=WHOLE, lacks=TEXT)
    whole = _answer(
        kind={"const": "Group"}, group=one(kind=TEXT, namespace=TEXT, name=TEXT), title=TEXT,
        state=words("placed", "below", "held", "fits", "preempts", "waits"), message=TEXT, remarks=NAMES,
        minimum=maybe(WHOLE), pods=one(onNodes=many(who), waiting=many(who)), topology=whose,
        now=maybe(one(pods=WHOLE, nodes=NAMES)),
        levels=many(one(label=TEXT, domains=WHOLE, closest=many(closest))),
        preemption=maybe(one(victims=many(who), nodes=NAMES, notDone=maybe(TEXT))),
        later=maybe(one(
            at=TEXT, domain=maybe(one(label=TEXT, values=NAMES)), nodes=NAMES, ahead=NAMES,
        )),
        noLater=maybe(one(
            cause=words("kube-scheduler", "leaving", "nodes", "too late", "unknown", "never"), text=TEXT,
        )),
        advice=many(one(text=TEXT, pods=WHOLE, nodes=WHOLE)),
    )  # fmt: skip
    return {"oneOf": [pod, node, whole]}


def _heading(**uncounted: Schema) -> dict[str, Schema]:
    """Fields that the audit and showback share; ``uncounted`` are more of a node whose GPUs cannot be counted."""
    unit = {"cpu_core": NUMBER, "memory_gib": NUMBER, "gpu": NUMBER, "gpu_memory_gib": NUMBER}
    model = one(model=TEXT, gpus=NUMBER, parts=WHOLE, price=NUMBER, source=TEXT, names=NAMES)
    effect = words("left out", "stays")
    return {
        "about": one(made=TEXT, source=TEXT, evenkeel=TEXT),
        "prices": named(**unit),
        "priceSources": named(**dict.fromkeys(unit, TEXT)),
        "pricesUnused": NAMES,
        "gpuModels": many(model),
        "mistakes": many(one(object=TEXT, field=TEXT, problem=TEXT, effect=effect)),
        "passedOver": by_name(WHOLE),
        "uncounted": many(
            one(
                node=TEXT,
                offers=by_name(WHOLE),
                gpus=maybe(WHOLE),
                **uncounted,
            )
        ),
        "leftOut": NAMES,
    }


def audit() -> Schema:
    """The used, free and stranded capacity of a cluster, and what the nodes would hold with each mode."""
    dimensions = ("cpu", "memory", "gpuCompute", "gpuMemory")
    figures = ("capacity", "used", "free", "closed", "stranded", "dead", "spare", "usable")
    amounts = one(**dict.fromkeys(dimensions, NUMBER))
    of_all = dict.fromkeys(figures, amounts)
    seen = one(seen=WHOLE, assumed=FLAG)
    typical = one(
        pods=NUMBER, cpu=NUMBER, memory=NUMBER, gpus=WHOLE, gpuMemoryMiB=WHOLE, gpuMemoryPercent=WHOLE, gpuCores=WHOLE,
    )  # fmt: skip
    orders = one(
        emptyNodes=many(WHOLE), unplaced=many(WHOLE), gpus=many(NUMBER), money=many(NUMBER)
    )
    held = one(**dict.fromkeys(dimensions, many(NUMBER)), pods=many(WHOLE))
    mode = one(
        mode=TEXT, stranded=amounts, dead=amounts, money=NUMBER, saved=NUMBER, emptyNodes=WHOLE, unplaced=NAMES,
        inOrders=orders, held=held,
    )  # fmt: skip
    choice = one(node=TEXT, preference=WHOLE, scores=POINTS, weighted=POINTS, loss=maybe(LOSS))
    upcoming = one(like=TEXT, pods=WHOLE, asks=TEXT, fitting=WHOLE, nodes=many(choice), why=TEXT)
    size = {"gpus": WHOLE, "nodes": WHOLE, "domain": NAMES}
    unit = one(unit=TEXT, pods=NAMES, nodes=NAMES, gpus=NUMBER)
    larger = one(**size, moves=one(gpus=NUMBER, units=many(unit)))
    level = one(label=maybe(TEXT), domains=WHOLE, largest=one(**size), next=maybe(larger))
    return _answer(
        **_heading(spare=one(cpu=NUMBER, memory=NUMBER)),
        units=one(**dict.fromkeys(dimensions, TEXT)),
        demand=one(gpuPods=seen, otherPods=seen, askingNothing=WHOLE, enough=WHOLE, typical=many(typical)),
        total=one(
            **of_all, value=one(**dict.fromkeys(figures, NUMBER)), usableByDimension=amounts, moneyByDimension=amounts,
            money=NUMBER,
        ),
        worst=NAMES,
        nodes=many(one(
            name=TEXT, **of_all, money=NUMBER, usableMoney=NUMBER, isClosed=FLAG, hasGpus=FLAG, models=NAMES,
            sharers=WHOLE, reason=TEXT, why=maybe(one(left=TEXT, cause=TEXT, misfits=TEXT, pods=TEXT)),
        )),
        waiting=many(one(pod=TEXT, cpu=NUMBER, memory=NUMBER, gpus=WHOLE)),
        next=many(upcoming),
        gangs=many(one(
            model=TEXT, gpusPerNode=WHOLE, nodes=WHOLE, taints=many(one(taint=TEXT, nodes=WHOLE)), levels=many(level)
        )),
        devices=one(
            usual=many(one(like=TEXT, pods=WHOLE, fitting=WHOLE)),
            models=many(one(
                driver=TEXT, model=maybe(TEXT), price=maybe(NUMBER), source=maybe(TEXT), devices=NUMBER, used=NUMBER,
                free=NUMBER, stranded=NUMBER, tainted=NUMBER,
            )),
            stranded=many(one(
                nodes=NAMES, driver=TEXT, pool=TEXT, device=TEXT, model=maybe(TEXT), free=NUMBER, why=TEXT, money=maybe(NUMBER),
            )),
            unreserved=many(one(claim=TEXT, devices=NUMBER, money=maybe(NUMBER))),
            money=one(stranded=NUMBER, unreserved=NUMBER), unlisted=NAMES,
        ),
        replay=one(
            note=TEXT, moved=WHOLE, stayed=WHOLE, stays=many(one(reason=TEXT, pods=WHOLE)), withoutController=WHOLE,
            orders=WHOLE, emptyNodes=WHOLE, arrivals=WHOLE, held=one(**dict.fromkeys(dimensions, NUMBER), pods=WHOLE),
            modes=many(mode), advice=one(mode=TEXT, figure=TEXT, text=TEXT),
        ),
    )  # fmt: skip


def showback() -> Schema:
    """Capacity and cost by namespace or by value of a label: ``evenkeel audit --by``."""
    amounts = {"pods": WHOLE} | dict.fromkeys(
        ("gpus", "gpuMemory", "cpu", "memory", "money"), NUMBER
    )
    return _answer(
        **_heading(),
        by=words("namespace", "label"),
        label=maybe(TEXT),
        rows=many(one(value=maybe(TEXT), **amounts)),
        total=one(**amounts),
    )


def replay() -> Schema:
    """The results of a replay: flat records. The name of a figure contains the name of its resource."""
    what = {
        "trace": TEXT, "variant": TEXT, "experiment": TEXT, "mode": TEXT, "load": maybe(NUMBER), "load_of": TEXT,
        "binding": TEXT, "queue": FLAG, "waiting": TEXT, "learn": TEXT, "queues": TEXT, "defrag": TEXT,
    }  # fmt: skip
    figures = "allocated|asked|dropped_pods|evicted|frag|lost|moves|nodes_occupied|occupied_nodes|recorded_seconds|seconds|still_waiting_pods|stranded|team|teams|wait"
    figure = {f"^({figures})(_.+)?$": maybe(NUMBER)}
    run = one(**what, seed=WHOLE, arrivals=WHOLE) | {"patternProperties": figure}
    summary = one(**what, runs=WHOLE) | {"patternProperties": figure}
    return _answer(runs=many(run), summary=many(summary))


def plan() -> Schema:
    """Which running pods to move, and what that frees."""
    pod = one(namespace=TEXT, name=TEXT, uid=TEXT)
    card = one(index=WHOLE, id=TEXT, model=TEXT, cores=WHOLE, memoryMiB=WHOLE)
    seat = one(node=TEXT, cards=many(card))
    freed = one(
        what=words("card", "slot", "node"), node=TEXT, card=maybe(one(index=WHOLE, id=TEXT, model=TEXT)),
    )  # fmt: skip
    move = one(
        pod=pod, owner=one(kind=TEXT, name=TEXT), onlyPod=FLAG, runSeconds=WHOLE, **{"from": seat}, to=seat,
        frees=many(freed), letsIn=many(one(pod=pod, group=maybe(TEXT), to=seat)),
    )  # fmt: skip
    totals = one(wholeCards=WHOLE, idleNodes=WHOLE, waitingPods=WHOLE)
    return _answer(
        **{"for": maybe(TEXT)}, bundles=many(one(moves=many(move))),
        totals=one(moves=WHOLE, before=totals, after=totals),
        movable=WHOLE, stays=many(one(reason=TEXT, pods=WHOLE)), tried=WHOLE, complete=FLAG,
    )  # fmt: skip


def queue() -> Schema:
    """The queues of tenants, one of them, or why a workload waits in one."""
    shown_queue = one(**QUEUE["properties"], aside=WHOLE)
    states = words("fits", "preempts", "waits", "behind", "goes", "aside", "holds", "finished")
    giver = one(namespace=TEXT, name=TEXT, queue=TEXT, priority=WHOLE, reason=TEXT)
    quota = one(
        flavor=TEXT, resource=TEXT, nominal=TEXT, borrowingLimit=maybe(TEXT), lendingLimit=maybe(TEXT),
    )  # fmt: skip
    policies = one(
        queueingStrategy=words("StrictFIFO", "BestEffortFIFO"), withinClusterQueue=TEXT, reclaimWithinCohort=TEXT,
        borrowWithinCohort=TEXT, maxPriorityThreshold=maybe(WHOLE), whenCanBorrow=TEXT, whenCanPreempt=TEXT,
        preference=TEXT, stopPolicy=TEXT, namespaceSelector=TEXT, admissionChecks=NAMES, usageBasedOrder=FLAG,
    )  # fmt: skip
    named = {"namespace": TEXT, "name": TEXT}
    waits_for = one(
        what=words("turn", "ends", "more", "undeclared", "place", "limit"),
        ends=many(one(**named, at=maybe(TEXT), uses=USES)),
        undeclared=many(one(**named)), reason=TEXT, endsTried=WHOLE,
    )  # fmt: skip
    starts = {
        "startsAt": maybe(TEXT),
        "startsInSeconds": maybe(NUMBER),
        "waitsFor": maybe(waits_for),
    }
    holder = one(
        namespace=TEXT, name=TEXT, localQueue=TEXT, priority=WHOLE, since=TEXT, admitted=FLAG, going=FLAG,
        uses=many(one(flavor=TEXT, resource=TEXT, amount=TEXT)),
    )  # fmt: skip
    waiter = one(
        namespace=TEXT, name=TEXT, localQueue=TEXT, priority=WHOLE, position=WHOLE, since=maybe(TEXT), state=states,
        reason=TEXT, message=TEXT, **starts,
    )  # fmt: skip
    aside = one(namespace=TEXT, name=TEXT, localQueue=TEXT, reason=TEXT, message=TEXT)
    shown = _answer(
        what={"const": "show"}, queue=shown_queue, quotas=many(quota), policies=maybe(policies), path=NAMES, children=NAMES,
        localQueues=many(one(namespace=TEXT, name=TEXT, weight=NUMBER, stopPolicy=TEXT)),
        holders=many(holder), waiters=many(waiter), notShown=WHOLE, aside=many(aside),
    )  # fmt: skip
    borrower = one(queue=TEXT, borrowed=TEXT, holding=WHOLE)
    lack = one(
        resource=TEXT, requested=TEXT, available=TEXT, missing=TEXT, nominal=TEXT, most=TEXT, used=TEXT,
        holding=WHOLE, borrowers=many(borrower),
    )  # fmt: skip
    flavor = one(
        flavor=TEXT, refusals=NAMES, resources=many(lack), givers=many(giver), limits=NAMES
    )
    why = _answer(
        what={"const": "why"}, namespace=TEXT, name=TEXT, localQueue=TEXT, queue=maybe(TEXT), cohort=maybe(TEXT),
        priority=WHOLE, since=maybe(TEXT), state=states, position=maybe(WHOLE), ofWaiting=WHOLE, ahead=NAMES, reason=TEXT,
        message=TEXT, victims=many(giver), flavors=many(flavor), needs=NAMES,
        uses=many(one(flavor=TEXT, resource=TEXT, amount=TEXT)), **starts,
    )  # fmt: skip
    amounts = many(one(resource=words("cpu", "memory", "gpu"), amount=TEXT))
    in_kai_queue = {
        "namespace": TEXT, "name": TEXT, "kind": TEXT, "priority": WHOLE, "preemptible": FLAG, "pods": WHOLE,
        "amounts": amounts,
    }  # fmt: skip
    kai_shown = _answer(
        what={"const": "show"}, kaiQueue=KAI_QUEUE, path=NAMES, children=NAMES, holders=many(one(**in_kai_queue)),
        waiters=many(one(**in_kai_queue, position=WHOLE, reason=TEXT, message=TEXT)), notShown=WHOLE,
    )  # fmt: skip
    kai_giver = one(pods=NAMES, queue=TEXT, priority=WHOLE, by=words("reclaim", "preempt"))
    kai_why = _answer(
        what={"const": "why"}, **in_kai_queue, queue=TEXT, state=words("holds", "held", "waits"), position=maybe(WHOLE),
        ofWaiting=WHOLE, ahead=NAMES, reason=TEXT, message=TEXT, queues=many(KAI_QUEUE), givers=many(kai_giver),
        protectedUntil=maybe(TEXT), limits=NAMES,
    )  # fmt: skip
    listed = _answer(
        what=words("list", "tree"), queues=many(shown_queue), lost=many(aside),
        astray=many(one(namespace=TEXT, name=TEXT, queue=TEXT)), kaiQueues=many(KAI_QUEUE),
    )  # fmt: skip
    return {"oneOf": [listed, shown, why, kai_shown, kai_why]}


ALL = (simulate, explain, audit, showback, replay, plan, queue)


def _answer(**fields: Schema) -> Schema:
    return one(schemaVersion={"const": SCHEMA_VERSION}, **fields)


def text_of(name: str, schema: Schema, about: str) -> str:
    """A file."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    head = {"$schema": draft, "title": f"evenkeel {name} -o json", "description": about}
    return json.dumps(head | schema, indent=1) + "\n"


def main() -> None:
    """Write every file anew."""
    for of in ALL:
        text = text_of(of.__name__, of(), (of.__doc__ or "").strip())
        (HERE / f"{of.__name__}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
