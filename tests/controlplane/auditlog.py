"""The API server's own word on who did what: its audit log.

log = auditlog.AuditLog(folder, [{"level": "Metadata", "resources": [{"group": "", "resources": ["pods/binding"]}]}])
with plane.start(extra_apiserver_flags=log.flags) as cp:
    …
    log.entries()
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class AuditLog:
    """The log of one API server."""

    def __init__(self, folder: Path, rules: Sequence[Mapping[str, Any]]) -> None:
        """``rules`` are those of an audit policy; what none of them names is not logged."""
        policy, self._log = folder / "audit-policy.json", folder / "audit.log"
        whole = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [*rules, {"level": "None"}],
        }
        policy.write_text(json.dumps(whole))
        self.flags = (f"--audit-policy-file={policy}", f"--audit-log-path={self._log}")

    def entries(self) -> list[dict[str, Any]]:
        """What has been answered so far, in the order of the answers."""
        if not self._log.exists():
            return []
        *lines, _ = self._log.read_text().split("\n")
        return sorted(map(json.loads, lines), key=lambda one: str(one["stageTimestamp"]))
