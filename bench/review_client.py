"""Sends reviews to a webhook as the API server does, at an even pace, and measures how long each takes.

Reviews come over connections that stay open, whether earlier ones have been answered or not, and the time of each counts
from when it should have been sent. So a pause of the client or the server counts for all that had to wait for it. Each
connection has a thread of its own: a loop of asyncio wakes up to a millisecond late, and that would be most of what is
measured.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Json = dict[str, Any]
PER_SECOND = 1_000
_CONNECTIONS, _WARM = 32, 25
_LIMIT_SECONDS = 60.0
_SWITCH_SECONDS = 0.0001
# The answer of a handler that gives no length comes in one chunk.
_LENGTH, _CHUNKED, _LAST_CHUNK = b"content-length:", b"transfer-encoding: chunked", b"0\r\n\r\n"


class Sent(NamedTuple):
    """What became of reviews: the seconds that each took, and all of them together."""

    took: list[float]
    whole: float

    def describe(self) -> Json:
        """Put it into figures."""
        quantiles = np.quantile(self.took, [0.5, 0.99, 1.0]) * 1000
        return {
            "reviews": len(self.took),
            "reviews_a_second": round(len(self.took) / self.whole, 1),
            **dict(zip(("p50_ms", "p99_ms", "max_ms"), quantiles.round(2).tolist(), strict=True)),
        }


def write_request(path: str, group: str, kind: str, found: Json, plural: str = "") -> bytes:
    """Write a review of an object that is created, as an HTTP request."""
    request = {
        "uid": "7c1f9a52-1111-2222-3333-444455556666",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": plural},
        "namespace": "team",
        "name": "train",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": found,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    body = json.dumps(review).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def send_reviews(served: Json, requests: Sequence[bytes], n: int) -> Sent:
    """Send so many reviews, the given ones in turn.

    Args:
        served: the port, and the authorities that the server has its certificate from.
        requests: the reviews.
        n: how many to send.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    tls = ssl.create_default_context(cadata=served["authorities"])
    took = [0.0] * n
    failures: list[BaseException] = []
    ready = threading.Barrier(_CONNECTIONS + 1)

    def work(first: int) -> None:
        try:
            with (
                socket.create_connection(("localhost", served["port"])) as plain,
                tls.wrap_socket(plain, server_hostname="localhost") as connection,
            ):
                for i in range(_WARM):
                    _call(connection, requests[i % len(requests)])
                ready.wait(_LIMIT_SECONDS)
                ready.wait(_LIMIT_SECONDS)
                for i in range(first, n, _CONNECTIONS):
                    due = begun[0] + i / PER_SECOND
                    time.sleep(max(0.0, due - time.perf_counter()))
                    _call(connection, requests[i % len(requests)])
                    took[i] = time.perf_counter() - due
        except BaseException as error:
            failures.append(error)
            ready.abort()
            raise

    threads = [threading.Thread(target=work, args=(i,)) for i in range(_CONNECTIONS)]
    begun = [0.0]
    for one in threads:
        one.start()
    ready.wait(_LIMIT_SECONDS)
    begun[0] = time.perf_counter() + 0.05
    ready.wait(_LIMIT_SECONDS)
    for one in threads:
        one.join()
    sys.setswitchinterval(before)
    if failures:
        raise failures[0]
    whole = max(i / PER_SECOND + one for i, one in enumerate(took))
    return Sent(took, whole)


def count_warm() -> int:
    """Count the reviews that are sent before the measured ones."""
    return _CONNECTIONS * _WARM


def _call(connection: ssl.SSLSocket, request: bytes) -> None:
    connection.sendall(request)
    found = connection.recv(65536)
    while not _is_whole(found):
        more = connection.recv(65536)
        assert more, "the server has closed the connection"
        found += more
    assert found.startswith(b"HTTP/1.1 200"), found


def _is_whole(found: bytes) -> bool:
    head, end, body = found.partition(b"\r\n\r\n")
    words = head.lower()
    if _CHUNKED in words:
        return found.endswith(_LAST_CHUNK)
    length = words.partition(_LENGTH)[2].partition(b"\r\n")[0]
    return bool(end) and len(body) >= int(length or 0)
