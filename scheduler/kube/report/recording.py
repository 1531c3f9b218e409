"""The engine's log in two files of bounded size: the present one, and an older one."""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from scheduler.config import Config
from scheduler.engine.recorded import Recorded
from scheduler.errors import BadInput
from scheduler.kube import heap

# Lines are written when so many bytes have been collected, or when there is nothing else to do.
_BUFFER_BYTES = 1 << 16
_log = structlog.get_logger("evenkeel.recording")


class Recording:
    """Writes lines to the file ``path``; a full file is renamed to ``path``.1."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """Make the file anew; only its owner can read it.

        Args:
            path: the log.
            most_bytes: the most bytes of both files together.

        Raises:
            BadInput: the file cannot be written.
        """
        self._path, self._most_bytes = path, most_bytes // 2
        self._lines: list[bytes] = []
        self._n_waiting = self._n_bytes = 0
        self._is_broken = False
        try:
            self._older.unlink(missing_ok=True)
            self._open()
        except OSError as error:
            raise BadInput("--record", f"{path}: {error.strerror}") from error

    @property
    def is_full(self) -> bool:
        """Whether a new file should be begun, by an engine that starts anew."""
        return self._n_bytes >= self._most_bytes and not self._is_broken

    def write(self, line: bytes) -> None:
        """Take one more line."""
        if not self._is_broken:
            self._lines.append(line)
            self._n_waiting += len(line)
            if self._n_waiting >= _BUFFER_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write the lines collected so far. A full disk ends the recording and nothing else."""
        if not self._lines:
            return
        whole = b"".join(self._lines)
        self._lines.clear()
        self._n_waiting = 0
        self._n_bytes += len(whole)
        try:
            self._file.write(whole)
        except OSError as error:
            self._end_recording(error)

    def begin_new_file(self) -> None:
        """Begin a new file. The present file becomes the older one, and the older one is deleted."""
        self.flush()
        try:
            self._file.close()
            self._path.replace(self._older)
            self._open()
        except OSError as error:
            self._end_recording(error)

    def raise_bound(self) -> None:
        """Let a file that has just been begun grow to twice its size at least, before the next one is begun.

        The state of a large cluster may be larger than the bound: a new file would be full at once.
        """
        least = 2 * (self._n_bytes + self._n_waiting)
        if least > self._most_bytes:
            _log.warning(
                "the recording is larger than it was to be: the state of the cluster takes more",
                mib=-(-2 * least >> 20),
            )
            self._most_bytes = least

    def close(self) -> None:
        """Write the rest, and close the file; nothing if it is closed."""
        if not self._file.closed:
            self.flush()
            self._file.close()

    @property
    def _older(self) -> Path:
        return self._path.with_name(f"{self._path.name}.1")

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        self._file = os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0)
        self._n_bytes = 0

    def _end_recording(self, error: OSError) -> None:
        self._is_broken = True
        self._file.close()
        _log.error("the recording has ended", file=str(self._path), error=str(error))


class Recorder:
    """A recorded engine and its files."""

    def __init__(self, config: Config, version: str, recording: Recording) -> None:
        self._recording = recording
        self.engine = Recorded(config, version, recording.write)

    def keep_up(self, now: float) -> None:
        """Between two turns: begin a new file when this one is full."""
        if self._recording.is_full:
            self._recording.begin_new_file()
            self.engine.start_anew(now)
            self._recording.raise_bound()
            # The garbage collector does not free the old state if it is frozen.
            heap.freeze_anew()

    def flush(self) -> None:
        """Write the lines collected so far: there is nothing else to do."""
        self._recording.flush()

    def close(self) -> None:
        """Write the rest, and close the file."""
        self._recording.close()
