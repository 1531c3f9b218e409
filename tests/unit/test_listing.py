"""Lists in pages: the next is asked for while one is read, and nothing is asked for in vain when that ends early."""

import asyncio
from typing import Any

import msgspec
import pytest

from scheduler.errors import ApiError
from scheduler.kube.client import ApiClient, TooLarge
from scheduler.kube.watch import listing


class Api:
    """Three pages of two; ``trouble`` comes in the place of a page, once."""

    def __init__(self, trouble: dict[str, Exception]) -> None:
        self.trouble = trouble
        self.asked: list[tuple[str, str]] = []
        self.n_running = 0

    async def request(self, *_: Any, params: dict[str, str], **__: Any) -> bytes:
        at = params.get("continue", "0")
        self.asked.append((at, params["limit"]))
        self.n_running += 1
        try:
            await asyncio.sleep(0)
            if error := self.trouble.pop(at, None):
                raise error
        finally:
            self.n_running -= 1
        n = int(at)
        meta = {"resourceVersion": "7", "continue": str(n + 1) if n < 2 else ""}
        return msgspec.json.encode({"metadata": meta, "items": [f"{n}a", f"{n}b"]})


def page_reader(read: list[tuple[str, int]], api: Api) -> Any:
    def read_one(raw: bytes | msgspec.Raw) -> str:
        text = str(msgspec.json.decode(raw))
        read.append((text, len(api.asked)))
        return text

    return read_one


async def read_whole(api: Api, read: Any) -> tuple[list[str], str]:
    client: ApiClient = api  # type: ignore[assignment]
    return await listing.read_list(client, "/p", {"a": "b"}, read)


async def test_the_next_page_is_asked_for_before_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listing, "_SLICE_ITEMS", 1)
    api, read = Api({}), list[tuple[str, int]]()
    items, version = await read_whole(api, page_reader(read, api))
    assert (items, version) == (["0a", "0b", "1a", "1b", "2a", "2b"], "7")
    # After the first object others have their turn: by the second the next page is under way.
    assert [n for text, n in read if text.endswith("b")] == [2, 3, 3]


async def test_a_page_that_is_too_large_is_asked_for_again_in_smaller_ones() -> None:
    api = Api({"1": TooLarge()})
    items, _ = await read_whole(api, page_reader([], api))
    assert len(items) == 6
    (_, large), (_, small) = [one for one in api.asked if one[0] == "1"]
    assert int(small) < int(large)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ApiError(410, "Expired", "too old"), listing.Expired),
        (ApiError(500, "InternalError", "no"), ApiError),
    ],
)
async def test_what_a_page_fails_with_is_said_by_the_list(
    error: ApiError, expected: type[Exception]
) -> None:
    api = Api({"1": error})
    with pytest.raises(expected):
        await read_whole(api, page_reader([], api))


async def test_who_cannot_read_a_page_leaves_no_request_behind() -> None:
    api = Api({})

    def refuse(_: bytes | msgspec.Raw) -> str:
        raise msgspec.ValidationError("no")

    with pytest.raises(msgspec.ValidationError):
        await read_whole(api, refuse)
    assert api.n_running == 0
