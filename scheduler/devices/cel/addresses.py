"""Functions of IP addresses and networks."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from math import ceil
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, by_length
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import quote
from scheduler.devices.cel.values import Address, Network, measure

_BITS = re.compile(r"[0-9]{1,3}", re.ASCII)
# Longer texts are no addresses; only what is said of them would be long.
_LONGEST = 100


def _make(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Address:
    return Address(address.packed, str(address))


def _parse(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, str]:
    """Return an address, or why a text is none."""
    try:
        return (ipaddress.ip_address(text) if len(text) <= _LONGEST else None), "unable to parse IP"
    except ValueError:
        return None, _explain(text)


def _explain(text: str) -> str:
    """Say why a text is no address, as Go does for IPv4."""
    if ":" in text or "." not in text:
        return "unable to parse IP"
    fields = text.split(".")
    problems = (_explain_field(fields, i) for i in range(len(fields)))
    return next(filter(None, problems), "IPv4 address too short")


def _explain_field(fields: list[str], at: int) -> str:
    """Say what is wrong with one part of an address, or nothing."""
    field = fields[at]
    problem = ""
    if at == 4:
        problem = "IPv4 address too long"
    elif not field:
        problem = f"IPv4 field must have at least one digit (at {quote('.'.join(fields[at:]))})"
    elif not field.isascii() or not field.isdigit():
        rest = ".".join([field.lstrip("0123456789"), *fields[at + 1 :]])
        problem = f"unexpected character (at {quote(rest)})"
    elif len(field) > 1 and field[0] == "0":
        problem = "IPv4 field has octet with leading zero"
    elif int(field[:4]) > 255:
        problem = "IPv4 field has value >255"
    return problem


def _read_ip(text: str) -> Address:
    address, problem = _parse(text)
    if address is None:
        raise CelError(
            f"IP Address {quote(text)} parse error during conversion from string: ParseAddr({quote(text)}): {problem}"
        )
    if address.version == 6 and address.scope_id is not None:
        raise CelError(f"IP address {quote(text)} with zone value is not allowed")
    if address.version == 6 and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return _make(address)


def _read_cidr(text: str) -> Network:
    says = "network address parse error during conversion from string: "
    name, slash, bits = text.rpartition("/")
    problem = "" if slash else "no '/'"
    address = None
    if not problem:
        address, problem = _parse(name)
        if address is None:
            problem = f"ParseAddr({quote(name)}): {problem}"
        elif "%" in name:
            problem = "IPv6 zones cannot be present in a prefix"
        elif not _BITS.fullmatch(bits) or (len(bits) > 1 and bits[0] == "0"):
            problem = f"bad bits after slash: {quote(bits)}"
        else:
            problem = "" if int(bits) <= address.max_prefixlen else "prefix length out of range"
    if address is None or problem:
        raise CelError(f"{says}{says}netip.ParsePrefix({quote(text)}): {problem}")
    if address.version == 6 and address.ipv4_mapped is not None:
        raise CelError(f"{says}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Network(_make(address), int(bits))


def _is(read: Any) -> Any:
    def check(_run: Run, text: str) -> bool:
        try:
            read(text)
        except CelError:
            return False
        return True

    return check


def _mask(address: Address, bits: int) -> bytes:
    size = len(address.packed)
    keep = (1 << 8 * size) - (1 << (8 * size - bits))
    return (int.from_bytes(address.packed, "big") & keep).to_bytes(size, "big")


def _read_other(read: Callable[[str], Any], other: Any) -> Any:
    """Read what is written as a text; of one that says nothing, upstream only says that no overload takes it."""
    if type(other) is not str:
        return other
    try:
        return read(other)
    except CelError:
        raise CelError("no such overload") from None


def _contains_ip(_run: Run, network: Network, other: Any) -> bool:
    address = _read_other(_read_ip, other)
    if len(address.packed) != len(network.address.packed):
        return False
    return _mask(address, network.bits) == _mask(network.address, network.bits)


def _contains_cidr(run: Run, network: Network, other: Any) -> bool:
    inner = _read_other(_read_cidr, other)
    return network.bits <= inner.bits and _contains_ip(run, network, inner.address)


def _masked(_run: Run, network: Network) -> Network:
    return Network(_make(ipaddress.ip_address(_mask(network.address, network.bits))), network.bits)


def _is_global(_run: Run, address: Address) -> bool:
    found = ipaddress.ip_address(address.packed)
    broadcast = address.packed == b"\xff" * 4
    return not (
        broadcast
        or found.is_unspecified
        or found.is_loopback
        or found.is_multicast
        or found.is_link_local
    )


def _is_local_multicast(_run: Run, address: Address) -> bool:
    packed = address.packed
    return (
        packed[:3] == b"\xe0\0\0"
        if len(packed) == 4
        else (packed[0] == 0xFF and packed[1] & 0x0F == 2)
    )


def _cost_contains_ip(network: Network, other: Any) -> int:
    return ceil(2 * measure(network) * 0.1) + (ceil(len(other) * 0.1) if type(other) is str else 0)


def _cost_contains_cidr(network: Network, other: Any) -> int:
    return _cost_contains_ip(network, other) + ceil(measure(network) * 0.1) + 1


ADDRESSES = Library(
    functions={
        "ip(string): ip": lambda _, text: _read_ip(text),
        "isIP(string): bool": _is(_read_ip),
        "ip.isCanonical(string): bool": lambda _, text: _read_ip(text).text == text,
        "cidr(string): cidr": lambda _, text: _read_cidr(text),
        "isCIDR(string): bool": _is(_read_cidr),
    },
    members={
        "family(ip): int": lambda _, a: 4 if len(a.packed) == 4 else 6,
        "isUnspecified(ip): bool": lambda _, a: not any(a.packed),
        "isLoopback(ip): bool": lambda _, a: ipaddress.ip_address(a.packed).is_loopback,
        "isLinkLocalMulticast(ip): bool": _is_local_multicast,
        "isLinkLocalUnicast(ip): bool": lambda _, a: ipaddress.ip_address(a.packed).is_link_local,
        "isGlobalUnicast(ip): bool": _is_global,
        "ip(cidr): ip": lambda _, a: a.address,
        "prefixLength(cidr): int": lambda _, a: a.bits,
        "masked(cidr): cidr": _masked,
        "containsIP(cidr, string): bool": _contains_ip,
        "containsIP(cidr, ip): bool": _contains_ip,
        "containsCIDR(cidr, string): bool": _contains_cidr,
        "containsCIDR(cidr, cidr): bool": _contains_cidr,
    },
    costs={
        "cidr": by_length(),
        "isIP": by_length(),
        "isCIDR": by_length(),
        "ip": lambda a: ceil(len(a) * 0.1) if type(a) is str else 1,
        "ip.isCanonical": by_length(0.2),
        "containsIP": _cost_contains_ip,
        "containsCIDR": _cost_contains_cidr,
    },
)
