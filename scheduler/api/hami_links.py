"""HAMi's scores of the links between the cards of a node.

The device plugin writes them where it is told to: of each card how well it is linked with each other one, higher is better.

Source: HAMi v2.10 (Apache-2.0), ``hami.io/node-nvidia-score``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

# Far more than the sum of all links of a card.
_SCORE_MAX = 1_000_000

Links = tuple[tuple[str, int], ...]


class _Scores(msgspec.Struct, gc=False, frozen=True):
    uuid: str
    score: dict[str, int] = {}


_decoder = msgspec.json.Decoder(list[_Scores])


def decode_links(text: str) -> Mapping[str, Links]:
    """Decode, for each card, its scores with other cards; nothing if the text cannot be read.

    Where links are not known, cards are chosen without them: nothing is lost but the choice, so the node stays in use.
    """
    try:
        found = _decoder.decode(text) if text else []
    except (msgspec.MsgspecError, RecursionError):
        return {}
    if any(not 0 <= score <= _SCORE_MAX for one in found for score in one.score.values()):
        return {}
    return {one.uuid: tuple(sorted(one.score.items())) for one in found}
