"""Functions of URLs, read as Go reads them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import quote as escape
from urllib.parse import unquote, unquote_plus

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, by_length
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import quote
from scheduler.devices.cel.values import Url

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL | re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_PORT = re.compile(r":[0-9]*", re.ASCII)
_HOST = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_ENCODED = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PATH_SAFE = "$&+,/:;=@-_.~"


class UrlError(ValueError):
    """A text is no URL; the message is Go's."""


def parse_url(text: str) -> Url:
    """Read a URL that is whole or begins with a slash.

    Raises:
        UrlError: it is none.
    """
    _split(text)
    bare, _, fragment = text.partition("#")
    url = _split(bare) if bare else Url("", "", "", "", "")
    _check_escapes(fragment)
    return Url(text, url.scheme, url.host, url.path, url.query)


def _split(text: str) -> Url:
    if _CONTROL.search(text):
        raise UrlError("net/url: invalid control character in URL")
    if not text:
        raise UrlError("empty url")
    if text == "*":
        return Url(text, "", "", "*", "")
    found = _SCHEME.fullmatch(text)
    if found is None and text[0] == ":":
        raise UrlError("missing protocol scheme")
    scheme, rest = (found[1].lower(), found[2]) if found else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise UrlError("invalid URI for request")
        return Url(text, scheme, "", "", query)
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        user, _, name = authority.rpartition("@")
        host = _read_host(scheme, name)
        if not _USER.fullmatch(user):
            raise UrlError("net/url: invalid userinfo")
        _check_escapes(user)
        rest = slash + path
    _check_escapes(rest)
    return Url(text, scheme, host, rest, query)


def _check_escapes(text: str) -> None:
    wrong = _BAD_ESCAPE.search(text)
    if wrong:
        raise UrlError(f"invalid URL escape {quote(wrong[0])}")


def _read_host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        name, closing, port = host[1:].rpartition("]")
        if not closing:
            raise UrlError("missing ']' in host")
        _check_port(port)
        bare = _unescape_host(name)
        try:
            ipaddress.IPv6Address(bare)
        except ValueError:
            raise UrlError(f"invalid host: ParseAddr({quote(bare)}): unable to parse IP") from None
        return f"[{bare}]{port}"
    first = host.find(":")
    if first >= 0:
        _check_port(host[first if scheme in {"http", "https"} else host.rfind(":") :])
    return _unescape_host(host)


def _check_port(port: str) -> None:
    if port and not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {quote(port)} after host")


def _unescape_host(host: str) -> str:
    _check_escapes(host)
    for found in re.finditer("%([0-7][0-9a-fA-F])", host):
        if found[0] != "%25":
            raise UrlError(f"invalid URL escape {quote(found[0])}")
    wrong = _HOST.search(host)
    if wrong:
        raise UrlError(f"invalid character {quote(wrong[0])} in host name")
    return unquote(host)


def _url(_run: Run, text: str) -> Url:
    try:
        return parse_url(text)
    except UrlError as error:
        raise CelError(
            f"URL parse error during conversion from string: parse {quote(text)}: {error}"
        ) from None


def is_url(text: str) -> bool:
    """Say whether a text is a URL."""
    try:
        _split(text)
    except UrlError:
        return False
    return True


def _path(_run: Run, url: Url) -> str:
    if _ENCODED.fullmatch(url.path):
        return url.path
    return (
        "*"
        if url.path == "*"
        else escape(
            unquote(url.path, errors="surrogateescape"), safe=_PATH_SAFE, errors="surrogateescape"
        )
    )


def _host_name(_run: Run, url: Url) -> str:
    name, colon, port = url.host.rpartition(":")
    host = name if colon and (not port or port.isdigit()) else url.host
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _port(_run: Run, url: Url) -> str:
    _, colon, port = url.host.rpartition(":")
    return port if colon and port.isdigit() else ""


def _query(run: Run, url: Url) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    run.toil(len(url.query))
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return found


URLS = Library(
    functions={
        "url(string): url": _url,
        "isURL(string): bool": lambda _, text: is_url(text),
    },
    members={
        "getScheme(url): string": lambda _, url: url.scheme,
        "getHost(url): string": lambda _, url: url.host,
        "getHostname(url): string": _host_name,
        "getPort(url): string": _port,
        "getEscapedPath(url): string": _path,
        "getQuery(url): map(string, list(string))": _query,
    },
    costs={"url": by_length()},
)
