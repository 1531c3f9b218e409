"""Ways to talk to a control plane: kubeconfig files, kubectl, and single API calls."""

import hashlib
import http.client
import json
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.controlplane import build

# Asked only whether it is there: each program makes a certificate of its own.
_ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY_CERTIFICATE.check_hostname = False
_ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE


class Answer(NamedTuple):
    """What the API server said: the status code, and the body decoded (text if not JSON)."""

    status: int
    body: Any


class Access:
    """Where an API server is, whom it knows, and a folder for what its clients need to keep.

    `tokens` are by the short names of the users; one of them is "admin", which may do anything.
    """

    def __init__(self, *, url: str, ca_file: Path, tokens: Mapping[str, str], folder: Path) -> None:
        self.url = url
        self.ca_file = ca_file
        self.tokens = tokens
        self.token = tokens["admin"]
        self.folder = folder

    def trust(self) -> ssl.SSLContext:
        """Return a context that takes this API server's certificate and no other."""
        return ssl.create_default_context(cafile=self.ca_file)

    def kubeconfig(self, path: Path | None = None, token: str | None = None) -> Path:
        """Write a kubeconfig file for the bearer of the token (the admin), and return its path.

        It needs no other file, so it works from anywhere on this machine.
        """
        token = token or self.token
        path = path or self.folder / f"kubeconfig-{_short_name(token)}.json"
        authority = b64encode(self.ca_file.read_bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        context = {"cluster": "evenkeel", "user": "evenkeel", "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "evenkeel", "cluster": cluster}],
            "users": [{"name": "evenkeel", "user": {"token": token}}],
            "contexts": [{"name": "evenkeel", "context": context}],
            "current-context": "evenkeel",
        }
        text = json.dumps(config, indent=2)
        if not path.exists() or path.read_text() != text:  # else somebody may be reading it
            path.touch(mode=0o600)
            path.write_text(text)
        return path

    def kubectl(
        self,
        *arguments: str,
        token: str | None = None,
        stdin: str | None = None,
        check: bool = True,
    ) -> str:
        """Run kubectl as the bearer of the token (the admin); return what it printed.

        Raises:
            RuntimeError: it failed. With `check=False` its complaint is part of the answer.
        """
        config = self.kubeconfig(token=token)
        own = (f"--kubeconfig={config}", f"--cache-dir={self.folder / 'kubectl'}")
        done = subprocess.run(
            [build.ensure("kubectl")["kubectl"], *own, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def request(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> Answer:
        """Make one API call as the bearer of the token (the admin). A PATCH is a merge patch.

        Each call is a connection of its own; for many, `objects.connect` is quicker.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body)
        host = urlsplit(self.url).netloc
        connection = http.client.HTTPSConnection(host, context=self.trust(), timeout=60)
        try:
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = answer.headers.get_content_type() == "application/json"
            return Answer(answer.status, json.loads(text) if is_json else text)
        finally:
            connection.close()


def is_ok(url: str, token: str) -> bool:
    """Tell whether something answers there with 200, whoever it says it is."""
    where = urlsplit(url)
    connection: http.client.HTTPConnection
    if where.scheme == "https":
        connection = http.client.HTTPSConnection(where.netloc, context=_ANY_CERTIFICATE, timeout=5)
    else:
        connection = http.client.HTTPConnection(where.netloc, timeout=5)
    try:
        connection.request("GET", where.path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _short_name(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:12]
