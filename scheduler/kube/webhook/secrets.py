"""Keeps the certificate of the webhook in a Secret that all replicas share."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

import msgspec

from scheduler.api import kinds
from scheduler.api.admission.settings import Served
from scheduler.api.jobs.parts import Json, get_in, read_list, read_object
from scheduler.api.jobs.templates import write_operation
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.webhook import certificates
from scheduler.kube.webhook.certificates import Certificates
from scheduler.kube.webhook.keeping import Pair

_KEYS = "ca.crt", "ca.key", "tls.crt", "tls.key"
_TRIES = 5


class SecretKeeper:
    """Keeps certificates in a Secret, and their authorities on the configurations, so that the API server trusts them."""

    def __init__(self, api: ApiClient, served: Served) -> None:
        settings = served.settings
        self._api, self._settings = api, settings
        self._configurations = served.list_configurations()
        service = f"{settings.name}.{settings.namespace}.svc"
        self._hosts = (service, f"{service}.cluster.local")

    async def find_pair(self) -> Pair:
        """Find the certificate in the Secret, or make it; before it is used, the API server gets to know its authority.

        Raises:
            ApiError: the API server refuses, or there is no such Secret or configuration.
        """
        found = await self._find_certificates()
        for kind, name in self._configurations:
            await self._trust(kind.find_path(name), found.authorities)
        return Pair(found.certificate, found.key)

    async def _find_certificates(self) -> Certificates:
        settings = self._settings
        path = kinds.SECRETS.find_path(settings.name, settings.namespace)
        for _ in range(_TRIES):
            secret = await self._api.get(path)
            found = _read_secret(secret)
            made = certificates.renew(found, self._hosts, datetime.now(UTC))
            if made is None and found is not None:
                return found
            if made is not None and await self._write_secret(path, secret, made):
                return made
        raise ApiError(0, "Conflict", f"{path}: others write it all the time")

    async def _write_secret(self, path: str, secret: Json, made: Certificates) -> bool:
        """Write certificates; return whether no other replica was faster."""
        data = {key: base64.b64encode(one).decode() for key, one in zip(_KEYS, made, strict=True)}
        try:
            await self._api.send("PUT", path, {**secret, "data": data})
        except ApiError as error:
            if answers.is_conflict(error):
                return False
            raise
        return True

    async def _trust(self, path: str, authorities: bytes) -> None:
        """Write the authorities on each webhook of a configuration that names others."""
        found = await self._api.get(path)
        wanted = base64.b64encode(authorities).decode()
        place = "webhooks", "clientConfig", "caBundle"
        operations = [
            write_operation("add", (place[0], i, *place[1:]), wanted)
            for i, one in enumerate(read_list(found, place[0]))
            if get_in(one, place[1:]) != wanted
        ]
        if operations:
            version = read_object(found, "metadata").get("resourceVersion")
            held = write_operation("replace", ("metadata", "resourceVersion"), version)
            await self._api.send("PATCH", path, [held, *operations], content_type=client.JSON_PATCH)


def _read_secret(secret: Any) -> Certificates | None:
    """Read certificates from a Secret; None if it has none, or not all."""
    try:
        data = msgspec.convert(secret.get("data") or {}, dict[str, str])
        return Certificates(*(base64.b64decode(data[key], validate=True) for key in _KEYS))
    except (KeyError, binascii.Error, msgspec.ValidationError):
        return None
