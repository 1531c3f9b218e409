"""What needs a container is refused in one sentence: nothing runs on the embedded cluster's nodes."""

import pytest

from scheduler.embedded.cluster import Cluster
from tests.embedded.conftest import Api

_UPGRADES = {
    "websocket": {
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
    },
    "SPDY": {"Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
}
_WHY = "this cluster simulates its nodes, so no container runs"


async def test_logs_are_refused_as_a_status_that_kubectl_prints(api: Api, cluster: Cluster) -> None:
    assert cluster is not None
    await api.pod()
    reply = await api.get(f"{api.pods}/p/log", container="c", follow="true")
    assert (reply.code, reply["kind"], reply["reason"]) == (501, "Status", "NotImplemented")
    assert reply["message"] == f'pod "p" has no logs: {_WHY}'


@pytest.mark.parametrize("protocol", _UPGRADES)
@pytest.mark.parametrize(
    ("subresource", "text"),
    [
        ("exec", 'pod "p" cannot run a command'),
        ("attach", 'pod "p" has no process to attach to'),
        ("portforward", 'pod "p" has no port to forward to'),
    ],
)
async def test_streams_are_refused_before_they_are_opened(
    api: Api, cluster: Cluster, protocol: str, subresource: str, text: str
) -> None:
    """kubectl asks for a WebSocket first, and for SPDY when it gets none."""
    assert cluster is not None
    await api.pod()
    method = "GET" if protocol == "websocket" else "POST"
    headers = {"Connection": "Upgrade", **_UPGRADES[protocol]}
    url = f"{api.url}{api.pods}/p/{subresource}"
    async with api.session.request(method, url, headers=headers) as reply:
        assert reply.status == 501
        assert (await reply.json())["message"] == f"{text}: {_WHY}"


async def test_a_debugging_container_is_refused(api: Api, cluster: Cluster) -> None:
    assert cluster is not None
    await api.pod()
    reply = await api.strategic(f"{api.pods}/p/ephemeralcontainers", {"spec": {}})
    assert (reply.code, reply["message"]) == (501, f'pod "p" cannot be debugged: {_WHY}')


async def test_a_pod_that_is_not_there_is_not_found(api: Api, cluster: Cluster) -> None:
    assert cluster is not None
    reply = await api.get(f"{api.pods}/none/log")
    assert (reply.code, reply["message"]) == (404, 'pods "none" not found')
