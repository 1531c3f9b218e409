"""Requests that reach into a container: refused in one sentence, because no container runs here."""

from scheduler.embedded.api.paths import Target
from scheduler.embedded.store.statuses import ApiError, quote

# What the client wanted, by subresource of a pod.
_WANTED = {
    "log": "has no logs",
    "exec": "cannot run a command",
    "attach": "has no process to attach to",
    "portforward": "has no port to forward to",
    "proxy": "has no port to forward to",
    "ephemeralcontainers": "cannot be debugged",
}


def is_wanted(target: Target) -> bool:
    """Tell whether a request needs a container of a pod."""
    return target.kind.resource == "pods" and target.subresource in _WANTED


def make_refusal(target: Target) -> ApiError:
    """Return the error to raise; kubectl prints it as one sentence."""
    why = "this cluster simulates its nodes, so no container runs"
    message = f"pod {quote(target.name)} {_WANTED[target.subresource]}: {why}"
    return ApiError(501, "NotImplemented", message)
