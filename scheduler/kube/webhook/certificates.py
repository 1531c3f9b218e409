"""Certificates for the webhook, by an authority of its own. Nothing here reads or writes anything.

An authority lives ten years, and a certificate one. A certificate is made anew when a third of its time is left; an
authority when it would end before a new certificate does, and the old one is trusted as long as it lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_TIME, _CERTIFICATE_TIME = timedelta(days=3652), timedelta(days=365)
_LEFT = _CERTIFICATE_TIME / 3
# Clocks differ.
_EARLIER = timedelta(minutes=10)
_AUTHORITY_NAME = "Evenkeel's webhook"


class Certificates(NamedTuple):
    """What the webhook needs to be trusted; all in PEM.

    Attributes:
        authorities: the certificates of the authorities that are trusted, the newest first.
        authority_key: the key of the newest one.
        certificate: that of the webhook.
        key: the key of the webhook.
    """

    authorities: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def renew(found: Certificates | None, hosts: Sequence[str], now: datetime) -> Certificates | None:
    """Return new certificates, or None if those that were found will do.

    Args:
        found: those so far; None for none, or none that can be read.
        hosts: the names under which the webhook is called.
        now: the time, with its zone.
    """
    try:
        known = _Known.read(found) if found is not None else None
    except (ValueError, TypeError, InvalidSignature):
        known = None
    if known is None:
        return _issue(None, hosts, now)
    is_good = known.signs and known.hosts == set(hosts)
    if is_good and known.certificate.not_valid_after_utc - now > _LEFT:
        return None
    return _issue(known, hosts, now)


class _Known(NamedTuple):
    """Certificates that could be read."""

    authorities: list[x509.Certificate]
    authority_key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def read(cls, found: Certificates) -> _Known | None:
        """Read certificates; None if the key of the authority is another one's.

        Raises:
            ValueError, TypeError: what was found is no certificate, or no key.
        """
        authorities = x509.load_pem_x509_certificates(found.authorities)
        key = serialization.load_pem_private_key(found.authority_key, None)
        own = serialization.load_pem_private_key(found.key, None)
        certificate = x509.load_pem_x509_certificate(found.certificate)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            return None
        if key.public_key() != authorities[0].public_key():
            return None
        return cls(authorities, key, certificate) if own.public_key() == certificate.public_key() else None  # fmt: skip

    @property
    def signs(self) -> bool:
        """Whether the newest authority has signed the certificate."""
        try:
            self.certificate.verify_directly_issued_by(self.authorities[0])
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    @property
    def hosts(self) -> set[str]:
        """The names for which the certificate is."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return set()
        return set(names.value.get_values_for_type(x509.DNSName))


def _issue(known: _Known | None, hosts: Sequence[str], now: datetime) -> Certificates:
    """Make a certificate, and an authority if there is none that lives longer."""
    lasting = known is not None and known.authorities[0].not_valid_after_utc > now + _CERTIFICATE_TIME  # fmt: skip
    if known is not None and lasting:
        authority, authority_key = known.authorities[0], known.authority_key
        others = known.authorities[1:]
    else:
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _make_authority(authority_key, now)
        others = known.authorities if known is not None else []
    trusted = [authority, *(one for one in others if one.not_valid_after_utc > now)]
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _make_certificate(key, hosts, (authority, authority_key), now)
    return Certificates(
        b"".join(map(_write, trusted)), _write_key(authority_key), _write(certificate), _write_key(key)
    )  # fmt: skip


def _make_authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY_NAME)])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        _begin(name, name, key.public_key(), now, _AUTHORITY_TIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _make_certificate(
    key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
    by: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    now: datetime,
) -> x509.Certificate:
    authority, authority_key = by
    # A common name has at most 64 characters, and clients do not read it: hosts are alternative names.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    hosts_named = x509.SubjectAlternativeName([x509.DNSName(one) for one in hosts])
    of_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _begin(name, authority.subject, key.public_key(), now, _CERTIFICATE_TIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(hosts_named, critical=False)
        .add_extension(of_authority, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _begin(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    lasting: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + lasting)
    )


def _write(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
