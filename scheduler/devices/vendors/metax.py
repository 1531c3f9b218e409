"""Metax's cards: whole ones, which a node reports by their number alone, and shares of cards.

The plugin chooses whole cards itself: of what is written on the pod only the number counts. HAMi's node policies rank nodes by
what they say of the links between so many cards, and by the links between shared cards that a pod gets as a whole.

Shares of one card have one policy for its cores; an idle card takes any. A card in use has the policy of its pods, also while the
plugin still reports another one. Online and offline pods (``metax-tech.com/sgpu-app-class``) share cards with each other and with no
other pods: an offline pod joins no online one, because it would be suspended, and an online pod takes no cores.
"""

from __future__ import annotations

from functools import cache, partial

import msgspec

from scheduler.api import hami, quantities, wire
from scheduler.api.cards import Card, CardUse, Sharing
from scheduler.api.hami_config.sections import DeviceConfig
from scheduler.api.pods import gpus
from scheduler.api.pods.gpus import ContainerAsk, ContainerKind, GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices.vendors.vendor import Answer, Vendor, read_offered, read_register
from scheduler.errors import BadInput
from scheduler.schema import choice_scores, marks
from scheduler.schema import columns as c

_WHOLE, _SHARES = "Metax-GPU", "Metax-SGPU"
_MIB, _CORES = 65_536, 100
_REGISTER = "metax-tech.com/node-gpu-devices"
POLICY, CLASS = "metax-tech.com/sgpu-qos-policy", "metax-tech.com/sgpu-app-class"
DEFAULT_POLICY, POLICIES = "best-effort", ("best-effort", "fixed-share", "burst-share")
ONLINE, OFFLINE = CLASSES = "online", "offline"
# The kinds of pods on a card, by the number of their mark; ``kernels/devices/vendor_scores`` knows the first two.
_KINDS = {kind: i for i, kind in enumerate((*CLASSES, *POLICIES))}
# Annotations of nodes with whole cards: JSON, by the number of cards that a pod gets. The node's score is the best less that.
_LOSSES, _SCORES = "metax-tech.com/gpu.topology.losses", "metax-tech.com/gpu.topology.scores"
_BEST = 2_000
# Whether the links between shared cards count that the pod gets as a whole.
_BY_LINKS = "metax-tech.com/sgpu-topology-aware"
_FIGURE_MAX = 2**31 - 1
_GIB = 1024
_NANOSECONDS = 10**9
_CODES = {CardRefusal.HEALTH: "CardUnhealthy", CardRefusal.TYPE: "CardQosPolicyMismatch"}


class _Told(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """What the plugin reports of a card."""

    uuid: str = ""
    total_dev_count: int = 0
    total_compute: int = 0
    total_v_ram: int = msgspec.field(default=0, name="totalVRam")
    numa: int = 0
    healthy: bool = False
    qos_policy: str = ""
    link_zone: int = 0


class _Use(msgspec.Struct, omit_defaults=True):
    """What the plugin reads of a card of a pod."""

    uuid: str
    compute: int = 0
    memory: int = msgspec.field(default=0, name="vRam")


_told = msgspec.json.Decoder(list[_Told])
_by_number = msgspec.json.Decoder(dict[int, int])


def list_kinds(config: DeviceConfig) -> tuple[Vendor, ...]:
    """List the kinds of devices with the resources that a configuration gives them."""
    section = config.metax

    def read_number(node: wire.Node) -> tuple[str, ...]:
        n, notes = read_offered(node, section.cards), node.metadata.annotations or {}
        told = notes.get(_LOSSES, ""), notes.get(_SCORES, "")
        return (node.metadata.name, str(n), *told) if n else ("", "", "", "")

    def read_share(kind: ContainerKind, container: wire.Container, field: str) -> ContainerAsk:
        n = gpus.read_integer(container, section.share_count, field)
        if not n:
            return ContainerAsk(kind)
        cores = gpus.read_integer(container, section.share_cores, field)
        cores = _CORES if cores is None else cores
        if cores > _CORES:
            raise BadInput(f"{field}[{section.share_cores}]", f"{cores} is not within 0..{_CORES}")
        mib = _read_mib(container, section.share_memory, field)
        return ContainerAsk(kind, n, mib, 0 if mib else gpus.WHOLE_CARD_PERCENT, cores)

    whole = Vendor(
        word=_WHOLE,
        cards=section.cards,
        is_whole=True,
        to_allocate="hami.io/metax-gpu-devices-to-allocate",
        allocated="hami.io/metax-gpu-devices-allocated",
        read_node=read_number,
        list_cards=_list_whole,
        lock=None,
        chooser=c.TOGETHER,
        scorer=choice_scores.BY_NUMBER,
    )
    shares = Vendor(
        word=_SHARES,
        cards=section.share_count,
        memory=section.share_memory,
        cores=section.share_cores,
        mib=_GIB,
        # Memory may be an amount of bytes, and online pods hold no cores.
        adds_up=False,
        register=_REGISTER,
        to_allocate="hami.io/metax-sgpu-devices-to-allocate",
        allocated="hami.io/metax-sgpu-devices-allocated",
        use_ids=("metax-tech.com/use-gpuuuid",),
        nouse_ids=("metax-tech.com/nouse-gpuuuid",),
        other_notes=(POLICY, CLASS, _BY_LINKS),
        read_node=lambda node: read_register(node, _REGISTER),
        list_cards=_list_shared,
        read_container=read_share,
        complete_ask=partial(_complete_ask, section.is_topology_aware),
        read_use=_read_use,
        write_more=_write_uses,
        chooser=c.ZONES,
        codes=_CODES,
    )
    return whole, shares


def _list_whole(words: tuple[str, ...]) -> tuple[Card, ...]:
    name, number, losses, scores = words
    n = int(number)
    by_number = zip(_read_by_number(losses, n), _read_by_number(scores, n), strict=True)
    return tuple(
        Card(
            id=f"{name}-metax-{i}",
            index=i,
            sharers=1,
            mib=_MIB,
            cores=_CORES,
            model=_WHOLE,
            by_number=told,
        )
        for i, told in enumerate(by_number)
    )


def _read_by_number(text: str, n: int) -> list[int]:
    """Read what HAMi adds to the score of a node for 1 to ``n`` cards; a number that is missing, or cannot be read, is the best."""
    if not text:
        return [0] * n
    try:
        told = _by_number.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        told = {}
    most = choice_scores.MOST[choice_scores.BY_NUMBER]
    return [max(-most, min(most, _BEST - told.get(i + 1, 0))) for i in range(n)]


def _list_shared(words: tuple[str, ...]) -> tuple[Card, ...]:
    """List the cards of the register; the index of a card is its place there.

    Raises:
        BadInput: the register cannot be read.
    """
    field = f"metadata.annotations[{_REGISTER}]"
    try:
        told = _told.decode(words[0])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(field, f"not a JSON list of cards: {error}") from error
    for one in told:
        figures = one.total_dev_count, one.total_compute, one.total_v_ram
        if not one.uuid or min(figures) < 0 or max(*figures, abs(one.numa)) > _FIGURE_MAX:
            problem = f'card "{one.uuid[:80]}" needs a uuid, and figures within 0..{_FIGURE_MAX}'
            raise BadInput(field, problem)
    if len({one.uuid for one in told}) != len(told):
        raise BadInput(field, "a card is listed twice; every uuid must be unique on its node")
    return tuple(
        Card(
            id=one.uuid,
            index=i,
            sharers=one.total_dev_count,
            mib=one.total_v_ram,
            cores=one.total_compute,
            model=_SHARES,
            mode=one.qos_policy,
            numa=one.numa,
            healthy=one.healthy,
            group=str(one.link_zone) if one.link_zone > 0 else "",
        )
        for i, one in enumerate(told)
    )


def _read_mib(container: wire.Container, resource: str, field: str) -> int:
    """Read memory as HAMi does: GiB if the API server writes it without a unit, else an amount of bytes; 0 for all memory."""
    amount = gpus.read_integer(container, resource, field) if resource else None
    if amount is None:
        return 0
    given = container.resources or wire.Resources()
    text = str((given.limits or {}).get(resource, (given.requests or {}).get(resource, "")))
    # The API server writes 2000 as 2k, so this is an amount of bytes, too.
    is_bytes = any(map(str.isalpha, text)) or (amount and amount % 1000 == 0)
    mib = amount // quantities.read_value("1Mi") if is_bytes else amount * _GIB
    if mib > _FIGURE_MAX:
        raise BadInput(f"{field}[{resource}]", f"{text} is more than {_FIGURE_MAX} MiB")
    return mib


def _complete_ask(by_links: bool, ask: GpuAsk, pod: wire.Pod) -> GpuAsk:
    """Read the policy for cores and the class of a pod, and whether links count.

    Raises:
        BadInput: an annotation has another value than those that there are.
    """
    notes = pod.metadata.annotations or {}
    if hami.FLAGS.get(notes.get(_BY_LINKS, ""), by_links):
        ask = ask._replace(scorer=choice_scores.BY_ZONES)
    kind = read_word(notes, CLASS, CLASSES)
    policy = read_word(notes, POLICY, POLICIES) or DEFAULT_POLICY
    sharing = _make_sharing(kind, policy)
    if kind != ONLINE:
        return ask._replace(vgpu_mode=policy, any_idle=True, sharing=sharing)
    coreless = tuple(one._replace(cores=0) for one in ask.containers)
    return ask._replace(
        containers=coreless, any_idle=True, sharing=sharing, scorer=choice_scores.BY_SHARERS
    )


@cache
def _make_sharing(kind: str, policy: str) -> Sharing:
    """Say which marks a pod of a class (empty for none) and a policy leaves, and which it looks for."""
    online, every = _KINDS[ONLINE], marks.make_mask(*(_KINDS[one] for one in CLASSES))
    if kind == ONLINE:
        return Sharing(marks.make_mark(online), opening=every, coreless=True, name=kind)
    own = _KINDS[policy]
    others = marks.make_mask(*(_KINDS[one] for one in POLICIES if one != policy))
    keeping = marks.make_mask(own)
    if kind:
        return Sharing(
            marks.make_mark(_KINDS[kind]) + marks.make_mark(own),
            closing=others | marks.make_mask(online),
            opening=every,
            keeping=keeping,
            name=f"{kind} with {policy}",
        )
    return Sharing(marks.make_mark(own), closing=others | every, keeping=keeping)


def read_word(notes: dict[str, str], key: str, words: tuple[str, ...]) -> str:
    """Read an annotation that is one of some words; empty if it is not there.

    Raises:
        BadInput: it is another one.
    """
    word = notes.get(key, "")
    if key in notes and word not in words:
        raise BadInput(
            f"metadata.annotations[{key}]", f'"{word[:80]}" is not one of {", ".join(words)}'
        )
    return word


def _read_use(use: CardUse, ask: ContainerAsk) -> CardUse:
    """Read what a container has of a card: a container that requests a whole card has all its memory, also if HAMi placed it."""
    is_alone = ask.mem_percent == gpus.WHOLE_CARD_PERCENT
    return use._replace(mem_mib=_FIGURE_MAX) if is_alone else use


def _write_uses(answer: Answer) -> dict[str, str]:
    """Write the cards in the words of Metax's own plugin, a list for each container."""
    uses = [[_Use(use.uuid, use.cores, use.mem_mib) for use in slot] for slot in answer.slots]
    return {
        "metax-tech.com/gpu-devices-allocated": msgspec.json.encode(uses).decode(),
        "metax-tech.com/predicate-time": str(answer.now * _NANOSECONDS),
    }
