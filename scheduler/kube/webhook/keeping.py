"""Who keeps the certificate of the webhook, and the one that reads it from files which others write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple, Protocol

from scheduler.errors import BadInput, explain_unreadable


class Pair(NamedTuple):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Keeper(Protocol):
    """Who keeps a certificate."""

    async def find_pair(self) -> Pair:
        """Find the certificate to be used from now on.

        Raises:
            ApiError: it cannot be read or written now.
            BadInput: it cannot be read, or is none; names it.
        """
        ...


class FileKeeper:
    """Reads a certificate that others write into a folder, as cert-manager's Secrets are mounted."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    async def find_pair(self) -> Pair:
        """Read both files.

        Raises:
            BadInput: one of them cannot be read.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> Pair:
        found = []
        for name in ("tls.crt", "tls.key"):
            path = self._folder / name
            try:
                found.append(path.read_bytes())
            except OSError as error:
                raise BadInput(str(path), explain_unreadable(error)) from error
        return Pair(*found)
