"""Random small clusters with storage, and pods that use it, for property tests."""

from typing import Any

from hypothesis import strategies as st

from tests.oracles.volumes import BOUND, GI, SELECTED, World

Json = dict[str, Any]
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
NODES = ("n0", "n1", "n2", "n3")
CLASSES = ("made", "given", "local", "now")
DRIVERS = ("a.csi", "b.csi")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2", "v3", "v4")
SIZES = st.sampled_from([GI, 2 * GI, 3 * GI])
MODES = st.lists(
    st.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"]), min_size=1, max_size=2
)
COLOURS = st.sampled_from(["red", "blue"])
SELECTORS = st.builds(lambda colour: {"matchLabels": {"colour": colour}}, COLOURS)


def _given(**parts: Any) -> Json:
    return {key: value for key, value in parts.items() if value is not None}


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Json:
    labels = _given(
        **{
            ZONE: draw(maybe(st.sampled_from(["x", "y"]))),
            OLD_ZONE: draw(st.sampled_from([None, None, "x"])),
            "rack": draw(maybe(st.sampled_from(["1", "2"]))),
            "host": name,
        }
    )
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {},
            "status": {"allocatable": {"cpu": 99, "pods": 99}}}  # fmt: skip


@st.composite
def affinities(draw: st.DrawFn) -> Json | None:
    kind = draw(st.sampled_from(["none", "host", "zone", "not", "two"]))
    if kind == "none":
        return None
    host = {"key": "host", "operator": "In", "values": [draw(st.sampled_from(NODES))]}
    zone = {"key": ZONE, "operator": "In", "values": [draw(st.sampled_from(["x", "y"]))]}
    terms: dict[str, list[list[Json]]] = {
        "host": [[host]],
        "zone": [[zone]],
        "not": [[{"key": "rack", "operator": "NotIn", "values": ["1"]}]],
        "two": [[host], [zone, {"key": "rack", "operator": "Exists"}]],
    }
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": one} for one in terms[kind]]}}


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Json:
    claim = draw(st.sampled_from([None] * 12 + list(CLAIMS)))
    reference = None
    if claim:
        uid = draw(st.sampled_from([f"uid-{claim}", "", "uid-other"]))
        reference = _given(namespace="default", name=claim, uid=uid or None)
    source = draw(maybe(st.sampled_from(DRIVERS)))
    csi = {"driver": source, "volumeHandle": draw(st.sampled_from([name, "same"]))}
    labels = _given(
        colour=draw(maybe(COLOURS)),
        **{
            draw(st.sampled_from([ZONE, OLD_ZONE])): draw(
                st.sampled_from([None, "x", "x__y", "x__"])
            )
        },
    )
    spec = _given(
        capacity={"storage": str(draw(SIZES))},
        accessModes=draw(MODES),
        storageClassName=draw(st.sampled_from(CLASSES[:3])),
        volumeMode=draw(st.sampled_from([None, None, "Block"])),
        nodeAffinity=draw(affinities()),
        claimRef=reference,
        csi=csi if source else None,
    )
    phase = draw(st.sampled_from(["Available", "Available", "Released"]))
    meta = _given(name=name, labels=labels, deletionTimestamp=draw(st.sampled_from([None] * 5 + ["2026-01-01T00:00:00Z"])))  # fmt: skip
    return {"kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": phase}}


@st.composite
def claims(draw: st.DrawFn, name: str) -> Json:
    notes: Json = {}
    volume = draw(st.sampled_from([None] * 7 + list(VOLUMES)))
    if volume and draw(st.sampled_from([True] * 8 + [False])):
        notes[BOUND] = "yes"
    if not volume and draw(st.sampled_from([True] + [False] * 7)):
        notes[SELECTED] = draw(st.sampled_from(NODES))
    spec = _given(
        accessModes=draw(MODES),
        resources={"requests": {"storage": str(draw(SIZES))}},
        storageClassName=draw(st.sampled_from([*CLASSES[:3] * 4, "now", "absent", None])),
        volumeName=volume,
        volumeMode=draw(st.sampled_from([None, None, None, "Block"])),
        selector=draw(st.none() | st.none() | SELECTORS),
    )
    meta = _given(name=name, namespace="default", uid=f"uid-{name}", annotations=notes,
        deletionTimestamp=draw(st.sampled_from([None] * 19 + ["2026-01-01T00:00:00Z"])))  # fmt: skip
    owner = draw(st.sampled_from(["p"] * 5 + ["q", None]))
    if owner:
        meta["ownerReferences"] = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    phase = draw(st.sampled_from(["Pending"] * 19 + ["Lost"]))
    return {
        "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": phase}
    }  # fmt: skip


@st.composite
def classes(draw: st.DrawFn, name: str) -> Json:
    zone = {"key": ZONE, "values": draw(st.lists(st.sampled_from(["x", "y"]), min_size=1))}
    provisioner = {"local": "kubernetes.io/no-provisioner"}.get(
        name, draw(st.sampled_from(DRIVERS))
    )
    return _given(
        kind="StorageClass",
        metadata={"name": name},
        provisioner=provisioner,
        volumeBindingMode=draw(st.sampled_from(["Immediate", None]))
        if name == "now"
        else "WaitForFirstConsumer",
        allowedTopologies=draw(
            st.none() | st.none() | st.just([{"matchLabelExpressions": [zone]}])
        ),
    )


@st.composite
def csi_nodes(draw: st.DrawFn, name: str) -> Json:
    drivers = [
        _given(
            name=driver,
            allocatable=draw(maybe(st.builds(lambda n: {"count": n}, st.integers(0, 2)))),
        )
        for driver in DRIVERS
        if draw(st.sampled_from([True, True, True, False]))
    ]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


@st.composite
def drivers(draw: st.DrawFn, name: str) -> Json:
    spec = _given(
        storageCapacity=draw(maybe(st.booleans())),
        preventPodSchedulingIfMissing=draw(st.sampled_from([None] * 4 + [True])),
    )
    return {"kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


@st.composite
def capacities(draw: st.DrawFn, name: str) -> Json:
    key, value = draw(st.sampled_from([(ZONE, "x"), (ZONE, "y"), ("host", "n0"), ("host", "n1")]))
    return _given(
        kind="CSIStorageCapacity",
        metadata={"name": name, "namespace": "kube-system"},
        storageClassName=draw(st.sampled_from(CLASSES[:2])),
        nodeTopology=draw(st.sampled_from([None, {}, {"matchLabels": {key: value}}])),
        capacity=draw(maybe(st.builds(str, SIZES))),
        maximumVolumeSize=draw(st.none() | st.none() | st.builds(str, SIZES)),
    )


@st.composite
def attachments(draw: st.DrawFn, name: str) -> Json:
    return {
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {
            "attacher": draw(st.sampled_from(DRIVERS)),
            "nodeName": draw(st.sampled_from(NODES)),
            "source": _given(persistentVolumeName=draw(maybe(st.sampled_from(VOLUMES)))),
        },
    }


@st.composite
def pod_volumes(draw: st.DrawFn) -> list[Json]:
    found: list[Json] = []
    for i in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["claim"] * 6 + ["own", "gce", "aws", "iscsi", "rbd", "none"]))
        disk = draw(st.sampled_from(["d0", "d1"]))
        read_only = draw(st.booleans())
        made: dict[str, Json] = {
            "claim": {"persistentVolumeClaim": {"claimName": draw(st.sampled_from(CLAIMS))}},
            "own": {"ephemeral": {"volumeClaimTemplate": {}}},
            "gce": {"gcePersistentDisk": {"pdName": disk, "readOnly": read_only}},
            "aws": {"awsElasticBlockStore": {"volumeID": disk}},
            "iscsi": {"iscsi": {"iqn": disk, "readOnly": read_only}},
            "rbd": {"rbd": {"image": disk, "monitors": [disk, "m"], "readOnly": read_only}},
            "none": {"emptyDir": {}},
        }
        found.append({"name": f"v{i}"} | made[kind])
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> Json:
    spec = _given(
        schedulerName="evenkeel",
        nodeName=node or None,
        containers=[{"name": "c"}],
        volumes=draw(pod_volumes()),
    )
    namespace = draw(st.sampled_from(["default"] * 5 + ["other"])) if node else "default"
    return {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": spec}


MAKERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "PersistentVolumeClaim": (claims, (*CLAIMS, "p-v0", "p-v1")),
    "PersistentVolume": (volumes, VOLUMES),
    "StorageClass": (classes, CLASSES),
    "CSINode": (csi_nodes, NODES),
    "CSIDriver": (drivers, DRIVERS),
    "CSIStorageCapacity": (capacities, ("r0", "r1", "r2")),
    "VolumeAttachment": (attachments, ("t0", "t1")),
}


_OFTEN = {"StorageClass": 10, "PersistentVolumeClaim": 9, "PersistentVolume": 9}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Nodes, pods on them, and of every kind of storage what a coin says."""
    there = NODES[: draw(st.integers(1, len(NODES)))]
    storage = [
        draw(maker(name))
        for kind, (maker, names) in MAKERS.items()
        for name in names
        if draw(st.integers(0, 9)) < _OFTEN.get(kind, 6)
    ]
    running = [
        draw(pods(f"r{i}", draw(st.sampled_from(NODES)))) for i in range(draw(st.integers(0, 5)))
    ]
    return World([draw(nodes(name)) for name in there], running, storage)
