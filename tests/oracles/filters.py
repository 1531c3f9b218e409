"""Static filters, one node and one pod at a time, from raw objects and plain words."""

import re
from typing import Any

Json = dict[str, Any]
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}


def refusal(pod: Json, node: Json, others: list[Json]) -> str:
    """The first filter that refuses the node, by kube-scheduler's name; empty when none does."""
    spec, node_spec = pod["spec"], node["spec"]
    named = named_nodes(spec)
    hard = [t for t in node_spec.get("taints", ()) if t["effect"] in {"NoSchedule", "NoExecute"}]
    taken = [port for other in others for port in ports(other)]
    declared = set(node.get("status", {}).get("declaredFeatures") or ())
    refuses = [
        ("NodeAffinity", named is not None and node["metadata"]["name"] not in named),
        (
            "NodeUnschedulable",
            node_spec.get("unschedulable") and not tolerates(spec, UNSCHEDULABLE),
        ),
        ("TaintToleration", not all(tolerates(spec, taint) for taint in hard)),
        ("NodeAffinity", not likes(spec, node)),
        ("NodePorts", any(conflict(mine, theirs) for mine in ports(pod) for theirs in taken)),
        ("NodeDeclaredFeatures", not features(spec) <= declared),
    ]
    return next((name for name, it_does in refuses if it_does), "")


def named_nodes(spec: Json) -> set[str] | None:
    """The nodes that required terms name, None when any term names none; empty where all contradict themselves."""
    terms = required_terms(spec)
    if not terms:
        return None
    found: set[str] = set()
    for term in terms:
        sets = [
            set(one.get("values") or ())
            for one in term.get("matchFields") or ()
            if one["key"] == "metadata.name" and one["operator"] == "In"
        ]
        if not sets:
            return None
        found |= {name for name in sets[0] if all(name in other for other in sets)}
    return found


def features(spec: Json) -> set[str]:
    """What a kubelet must declare."""
    found = set()
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        actions = [rule["action"] for rule in container.get("restartPolicyRules") or ()]
        if "RestartAllContainers" in actions:
            found.add("RestartAllContainersOnContainerExits")
        for mount in container.get("volumeMounts") or ():
            if mount.get("bindMountOptions"):
                found.add("VolumeBindMountOptions")
    if spec.get("hostNetwork") and spec.get("hostUsers", True) is False:
        found.add("UserNamespacesHostNetworkSupport")
    return found


def tolerates(spec: Json, taint: Json) -> bool:
    for toleration in spec.get("tolerations", ()):
        key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
        same_effect = not toleration.get("effect") or toleration["effect"] == taint["effect"]
        if not same_effect:
            continue
        if key not in {"", taint["key"]}:
            continue
        mine, theirs = toleration.get("value", ""), taint.get("value", "")
        if operator == "Exists" or (operator == "Equal" and mine == theirs):
            return True
    return False


def likes(spec: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels", {})
    for key, value in spec.get("nodeSelector", {}).items():
        if labels.get(key) != value:
            return False
    terms = required_terms(spec)
    return terms is None or any(matches(term, node) for term in terms)


def required_terms(spec: Json) -> list[Json] | None:
    """Of node affinity; None when there is none."""
    required = (
        spec.get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    found: list[Json] | None = None if required is None else required["nodeSelectorTerms"]
    return found


def matches(term: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels", {})
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    if not all(map(is_readable, expressions)):
        return False
    return all(holds(one, labels) for one in expressions) and all(
        one["key"] in name and one["operator"] in {"In", "NotIn"} and len(one["values"]) == 1
        and holds(one, name)
        for one in fields
    )  # fmt: skip


def is_readable(expression: Json) -> bool:
    """Whether apimachinery makes a requirement of a node's label of it: a value of every operator is a label's."""
    values: list[str] = expression.get("values") or []
    number = {
        "In": len(values) > 0,
        "NotIn": len(values) > 0,
        "Exists": not values,
        "DoesNotExist": not values,
        "Gt": len(values) == 1,
        "Lt": len(values) == 1,
    }.get(expression["operator"], False)
    numeric = (
        expression["operator"] not in {"Gt", "Lt"} or _integer((values or [""])[0]) is not None
    )
    prefix, slash, name = expression["key"].rpartition("/")
    word = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
    domain = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    named = re.fullmatch(word, name) and (
        not slash or (len(prefix) < 254 and re.fullmatch(domain, prefix))
    )
    return bool(
        number and numeric and named and all(not v or re.fullmatch(word, v) for v in values)
    )


def holds(expression: Json, labels: Json) -> bool:
    operator: str = expression["operator"]
    values: list[str] = expression.get("values") or []
    found: str | None = labels.get(expression["key"])
    match operator:
        case "In":
            return found is not None and found in values
        case "NotIn":
            return bool(values) and found not in values
        case "Exists" | "DoesNotExist":
            return (found is not None) == (operator == "Exists")
        case "Gt" if len(values) == 1:
            return _less(values[0], found)
        case "Lt" if len(values) == 1:
            return _less(found, values[0])
    return False


def _less(a: str | None, b: str | None) -> bool:
    """Of two integers; anything else is neither less nor more."""
    low, high = _integer(a or ""), _integer(b or "")
    return low is not None and high is not None and low < high


def _integer(text: str) -> int | None:
    if not re.fullmatch(r"[+-]?0*[0-9]{1,19}", text):
        return None
    number = int(re.sub(r"^([+-]?)0*(?=[0-9])", r"\1", text))
    return number if -(2**63) <= number <= 2**63 - 1 else None


def ports(pod: Json) -> list[tuple[str, int, str]]:
    init = pod["spec"].get("initContainers", ())
    holders = [
        *pod["spec"].get("containers", ()),
        *(c for c in init if c.get("restartPolicy") == "Always"),
    ]
    return [
        (port.get("protocol") or "TCP", port["hostPort"], port.get("hostIP") or "0.0.0.0")
        for holder in holders
        for port in holder.get("ports", ())
        if port.get("hostPort", 0) > 0
    ]


def conflict(a: tuple[str, int, str], b: tuple[str, int, str]) -> bool:
    return a[:2] == b[:2] and (a[2] == b[2] or "0.0.0.0" in {a[2], b[2]})
