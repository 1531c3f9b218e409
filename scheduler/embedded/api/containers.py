"""Requests that reach into a container: refused in one sentence, because no container runs here."""

from scheduler.embedded.api.paths import Target
from scheduler.embedded.store.statuses import ApiError, quoted

# By subresource of a pod, what the client wanted.
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


def refusal(target: Target) -> ApiError:
    """Return what to raise; kubectl prints it as one sentence."""
    why = "this cluster simulates its nodes, so no container runs"
    message = f"pod {quoted(target.name)} {_WANTED[target.subresource]}: {why}"
    return ApiError(501, "NotImplemented", message)
