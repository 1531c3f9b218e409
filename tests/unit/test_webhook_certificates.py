"""The certificates of the webhook: made, kept while they last, and made anew before they end."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509

from scheduler.api.admission.settings import Served
from scheduler.api.queues.settings import WebhookSettings
from scheduler.errors import ApiError, BadInput
from scheduler.kube.webhook import certificates
from scheduler.kube.webhook.certificates import Certificates
from scheduler.kube.webhook.keeping import FileKeeper
from scheduler.kube.webhook.secrets import SecretKeeper
from tests.unit.jsonpatch import apply_patch

Json = dict[str, Any]
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_HOSTS = ("evenkeel-webhook.evenkeel-system.svc",)


def _make(now: datetime = _NOW) -> Certificates:
    made = certificates.renew(None, _HOSTS, now)
    assert made is not None
    return made


def _read(text: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(text)


def test_a_certificate_is_for_its_hosts_and_signed_by_its_authority() -> None:
    made = _make()
    (authority,), (certificate,) = _read(made.authorities), _read(made.certificate)
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(names.get_values_for_type(x509.DNSName)) == _HOSTS
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.not_valid_before_utc < _NOW < certificate.not_valid_after_utc


@pytest.mark.parametrize(("days", "is_renewed"), [(0, False), (240, False), (245, True), (400, True)])  # fmt: skip
def test_a_certificate_is_made_anew_when_a_third_of_its_time_is_left(days: int, is_renewed: bool) -> None:  # fmt: skip
    made = _make()
    again = certificates.renew(made, _HOSTS, _NOW + timedelta(days=days))
    assert (again is not None) is is_renewed
    if again is not None:
        # Its authority is the same, so those that trust it need not hear of it.
        assert again.authorities == made.authorities
        assert again.key != made.key


def test_an_authority_is_made_anew_before_it_ends_and_the_old_one_stays_trusted() -> None:
    made, now = _make(), _NOW + timedelta(days=9 * 365 + 10)
    again = certificates.renew(made, _HOSTS, now)
    assert again is not None
    newest, old = _read(again.authorities)
    assert old == _read(made.authorities)[0]
    _read(again.certificate)[0].verify_directly_issued_by(newest)
    # Once it has ended it is trusted no longer.
    later = certificates.renew(again, _HOSTS, now + timedelta(days=2 * 365))
    assert later is not None
    assert _read(later.authorities) == [newest]


@pytest.mark.parametrize("field", Certificates._fields)
@pytest.mark.parametrize("text", [b"", b"nothing", b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"])  # fmt: skip
def test_what_cannot_be_read_is_made_anew(field: str, text: bytes) -> None:
    broken = _make()._replace(**{field: text})
    again = certificates.renew(broken, _HOSTS, _NOW)
    assert again is not None
    assert certificates.renew(again, _HOSTS, _NOW) is None


def test_what_does_not_belong_together_is_made_anew() -> None:
    one, other = _make(), _make()
    for mixed in (
        one._replace(authorities=other.authorities, authority_key=other.authority_key),
        one._replace(authority_key=other.authority_key),
        one._replace(key=other.key),
    ):
        again = certificates.renew(mixed, _HOSTS, _NOW)
        assert again is not None
        assert certificates.renew(again, _HOSTS, _NOW) is None
    assert certificates.renew(one, ("other.svc",), _NOW) is not None


class _Server:
    """An API server that has what a keeper reads and writes."""

    def __init__(self) -> None:
        webhooks: list[Json] = [
            {"name": name, "clientConfig": {"service": {}}} for name in ("a", "b")
        ]
        meta = {"name": "evenkeel-webhook", "resourceVersion": "1"}
        self.secret: Json = {"metadata": meta, "type": "Opaque"}
        self.hooks: Json = {"metadata": meta, "webhooks": webhooks}
        self.conflicts = 0
        self.writes: list[str] = []
        self.read: set[str] = set()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        del params
        self.read.add(path.partition("/apis/admissionregistration.k8s.io/v1/")[2])
        return self.secret if "/secrets/" in path else self.hooks

    async def send(self, method: str, path: str, body: Any, *, content_type: str = "") -> bytes:
        del content_type
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "changed")
        self.writes.append(f"{method} {path.rpartition('/')[0].rpartition('/')[2]}")
        if method == "PUT":
            self.secret = msgspec.json.decode(msgspec.json.encode(body))
        else:
            self.hooks = apply_patch(self.hooks, body)
        return b"{}"


def _make_keeper(server: _Server) -> SecretKeeper:
    return SecretKeeper(server, Served(WebhookSettings(), for_queues=True, for_devices=True))  # type: ignore[arg-type]


async def test_the_first_replica_makes_the_certificate_and_the_others_use_it() -> None:
    server = _Server()
    first = await _make_keeper(server).find_pair()
    assert server.writes[0] == "PUT secrets"
    assert set(server.writes[1:]) == {"PATCH mutatingwebhookconfigurations"}
    trusted = {one["clientConfig"]["caBundle"] for one in server.hooks["webhooks"]}
    assert trusted == {server.secret["data"]["ca.crt"]}
    n_writes = len(server.writes)
    assert await _make_keeper(server).find_pair() == first
    assert len(server.writes) == n_writes


@pytest.mark.parametrize(
    ("served", "names"),
    [
        (Served(WebhookSettings(), True, False), {"mutating": "", "validating": ""}),
        (Served(WebhookSettings(), False, True), {"mutating": "-devices"}),
    ],
)
async def test_the_authority_is_written_where_the_webhook_is_named(
    served: Served, names: dict[str, str]
) -> None:
    server = _Server()
    await SecretKeeper(server, served).find_pair()  # type: ignore[arg-type]
    wanted = {f"{kind}webhookconfigurations/evenkeel-webhook{end}" for kind, end in names.items()}
    assert server.read - {""} == wanted


async def test_of_two_replicas_that_write_at_once_one_reads_again() -> None:
    server = _Server()
    server.conflicts = 1
    pair = await _make_keeper(server).find_pair()
    assert base64.b64decode(server.secret["data"]["tls.crt"]) == pair.certificate
    server.conflicts = 100
    server.secret = {"metadata": {}}
    with pytest.raises(ApiError):
        await _make_keeper(server).find_pair()


@pytest.mark.parametrize("data", [{"tls.crt": "%%%"}, {"tls.crt": 5}, [], "text"])
async def test_a_secret_with_something_else_is_written_anew(data: Any) -> None:
    server = _Server()
    server.secret["data"] = data
    pair = await _make_keeper(server).find_pair()
    assert base64.b64decode(server.secret["data"]["tls.key"]) == pair.key


async def test_what_others_have_taken_from_a_configuration_is_written_again() -> None:
    server = _Server()
    keeper = _make_keeper(server)
    await keeper.find_pair()
    del server.hooks["webhooks"][1]["clientConfig"]["caBundle"]
    await keeper.find_pair()
    assert (
        server.hooks["webhooks"][1]["clientConfig"]["caBundle"] == server.secret["data"]["ca.crt"]
    )


async def test_files_of_others_are_read_each_time(tmp_path: Path) -> None:
    keeper = FileKeeper(str(tmp_path))
    with pytest.raises(BadInput, match=r"tls\.crt: there is no such file"):
        await keeper.find_pair()
    for made in (_make(), _make()):
        (tmp_path / "tls.crt").write_bytes(made.certificate)
        (tmp_path / "tls.key").write_bytes(made.key)
        assert await keeper.find_pair() == (made.certificate, made.key)
