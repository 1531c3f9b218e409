"""What a test gets of a running cluster beside its URL."""

from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web

from scheduler.embedded import cluster as embedded
from scheduler.embedded.agents import nodes
from scheduler.embedded.api.server import Serve, Settings
from scheduler.embedded.store.statuses import ApiError
from tests.embedded.conftest import Api, pod


async def test_a_token_is_asked_for_if_one_is_set(tmp_path: Path) -> None:
    async with (
        embedded.start(settings=Settings(token="secret")) as cluster,
        aiohttp.ClientSession() as session,
    ):
        path = f"{cluster.url}/api/v1/nodes"
        async with session.get(path) as reply:
            assert reply.status == 401
            assert (await reply.json())["reason"] == "Unauthorized"
        config = yaml.safe_load(cluster.write_kubeconfig(tmp_path / "config").read_text())
        assert config["clusters"][0]["cluster"]["server"] == cluster.url
        token = config["users"][0]["user"]["token"]
        async with session.get(path, headers={"Authorization": f"Bearer {token}"}) as reply:
            assert reply.status == 200
    assert (tmp_path / "config").stat().st_mode & 0o077 == 0


async def test_objects_can_be_added_without_http(api: Api, cluster: embedded.Cluster) -> None:
    sent = pod("p")
    (_, stored) = cluster.add(nodes.make_gpu_node("g1", cards=2, numa_nodes=2), sent)
    assert stored["status"]["phase"] == "Pending"
    assert sent == pod("p")
    read = await api.get("/api/v1/nodes/g1")
    assert read["status"]["allocatable"]["nvidia.com/gpu"] == "20"
    assert '"numa":1' in read["metadata"]["annotations"]["hami.io/node-nvidia-register"]
    with pytest.raises(ValueError, match="no kind v9 Thing is served"):
        cluster.add({"apiVersion": "v9", "kind": "Thing"})


async def test_requests_can_be_made_to_fail(api: Api, cluster: embedded.Cluster) -> None:
    async def around(request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        if request.path.endswith("/binding"):
            raise ApiError(503, "ServiceUnavailable", "not now")
        return await serve(request)

    await api.pod()
    cluster.server.around = around
    reply = await api.bind("p", "n1")
    assert (reply.code, reply["message"]) == (503, "not now")
    assert (await api.get(f"{api.pods}/p")).code == 200
    cluster.server.around = None
    assert (await api.bind("p", "n1")).code == 201
