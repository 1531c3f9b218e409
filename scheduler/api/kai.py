"""KAI's queues as they are decoded. What an administrator writes stays as it is, and its reader says what is wrong with it."""

from __future__ import annotations

from typing import Any

from scheduler.api.wire import Object


class Queue(Object, tag="Queue.scheduling.run.ai"):
    """A queue of KAI."""

    spec: Any = None
    status: Any = None
