"""Where training stood at its checkpoints: step numbers go on from there after a restart.

The file ``metadata.json`` beside the checkpoints is the predecessor's: a list of states, the last one counts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.config_constants import (
    CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR,
    CHECKPOINT_DIR_KEY,
    DEFAULT_CHECKPOINT_CONFIG_FILE,
    LATEST_GLOBAL_STEP_SAVED,
    LATEST_GLOBAL_STEP_SEEN,
    LATEST_MODE_STEP,
    METADATA_FILENAME,
    TRAINING_RUN,
)
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.store.file_moves import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StateStore"]

_MAX_BYTES = 10_000_000
_MAX_STATES = 1000
_MAX_FILES = 10_000
_UPLOADED = "sagemaker-uploaded"


class StateStore:
    """Watches the folder that the file in ``CHECKPOINT_CONFIG_FILE_PATH`` names with ``LocalPath``.

    What cannot be read is passed over with a warning: steps then begin at 0.
    """

    def __init__(self) -> None:
        self._dir = _checkpoint_dir()
        self._states: list[dict[str, Any]] = []
        self._seen: dict[str, tuple[int, int]] = {}
        if self._dir is not None:
            self._states = _states(self._dir / METADATA_FILENAME)
            self._seen = self._files(self._dir)
        self._run = self.training_run

    @property
    def watching(self) -> bool:
        """Whether there is a folder of checkpoints to watch."""
        return self._dir is not None

    def get_last_saved_state(self) -> dict[str, Any] | None:
        """The state with the latest step; None without any."""
        return self._states[-1] if self._states else None

    @property
    def training_run(self) -> int:
        """How often training was restarted from a checkpoint."""
        last = self.get_last_saved_state()
        return 0 if last is None else 1 + int(last[TRAINING_RUN])

    def start(self) -> tuple[int | None, dict[ModeKeys, int]]:
        """Where steps go on: the last one that was saved, and the last of each mode; globally -1 at first."""
        last = self.get_last_saved_state()
        if last is None:
            return None, {ModeKeys.GLOBAL: -1}
        modes = {ModeKeys[name]: int(step) for name, step in last[LATEST_MODE_STEP].items()}
        return last[LATEST_GLOBAL_STEP_SAVED], modes | {ModeKeys.GLOBAL: int(last[LATEST_GLOBAL_STEP_SEEN])}

    def note(self, step: int, saved: int | None, modes: Mapping[ModeKeys, int]) -> None:
        """A step is over: write where training stands if a checkpoint came since the last look.

        Raises
        ------
        OSError
            It cannot be written.
        """
        if self.is_checkpoint_updated():
            self.update_state(
                {
                    TRAINING_RUN: self._run,
                    LATEST_GLOBAL_STEP_SAVED: saved,
                    LATEST_GLOBAL_STEP_SEEN: step,
                    LATEST_MODE_STEP: {mode.name: one for mode, one in modes.items()},
                }
            )

    def is_checkpoint_updated(self) -> bool:
        """Whether a checkpoint was added, changed or taken away since the last look, and one is there."""
        if self._dir is None:
            return False
        files = self._files(self._dir)
        changed, self._seen = bool(files) and files != self._seen, files
        return changed

    def update_state(self, ts_state: dict[str, Any]) -> None:
        """Add a state to the file, atomically.

        Raises
        ------
        OSError
            It cannot be written.
        """
        if self._dir is None:
            return
        self._states = [*self._states, ts_state][-_MAX_STATES:]
        path = self._dir / METADATA_FILENAME
        fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        fresh.write_text(json.dumps(self._states), encoding="utf-8")
        replace_file(fresh, path)

    @staticmethod
    def _files(folder: Path) -> dict[str, tuple[int, int]]:
        """Size and time of change of each checkpoint file."""
        found: dict[str, tuple[int, int]] = {}
        for child, _, names in os.walk(folder):
            for name in names:
                if name.startswith(METADATA_FILENAME) or _UPLOADED in name:
                    continue
                if len(found) >= _MAX_FILES:
                    return found
                path = os.path.join(child, name)  # noqa: PTH118 - called at every step
                try:
                    facts = os.stat(path)  # noqa: PTH116
                except OSError:
                    continue
                found[path] = facts.st_size, facts.st_mtime_ns
        return found


def _checkpoint_dir() -> Path | None:
    path = Path(os.environ.get(CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, DEFAULT_CHECKPOINT_CONFIG_FILE))
    value = _read(path)
    folder = value.get(CHECKPOINT_DIR_KEY) if isinstance(value, dict) else None
    if isinstance(folder, str) and folder:
        return Path(folder).expanduser()
    if value is not None:
        get_logger().warning("%s names no folder with %r; steps begin at 0.", path.name, CHECKPOINT_DIR_KEY)
    return None


def _states(path: Path) -> list[dict[str, Any]]:
    """The states in the file, by the latest step."""
    value = _read(path)
    if value is None:
        return []
    if not isinstance(value, list) or not all(map(_is_state, value)):
        get_logger().warning("%s is not what a hook has written; steps begin at 0.", path.name)
        return []
    return sorted(value, key=lambda one: one[LATEST_GLOBAL_STEP_SEEN])[-_MAX_STATES:]


def _is_state(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    modes, saved = value.get(LATEST_MODE_STEP), value.get(LATEST_GLOBAL_STEP_SAVED)
    return (
        all(_is_step(value.get(key)) for key in (TRAINING_RUN, LATEST_GLOBAL_STEP_SEEN))
        and (saved is None or _is_step(saved))
        and isinstance(modes, dict)
        and all(name in ModeKeys.__members__ and _is_step(step) for name, step in modes.items())
    )


def _is_step(value: Any) -> bool:
    return type(value) is int and -1 <= value < 2**62


def _read(path: Path) -> Any:
    """The JSON value in a file; None if there is no file, or none that can be read."""
    try:
        if not path.is_file():
            return None
        if path.stat().st_size <= _MAX_BYTES:
            return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        get_logger().warning("%s cannot be read (%s); steps begin at 0.", path.name, type(error).__name__)
        return None
    get_logger().warning("%s is larger than %d bytes; steps begin at 0.", path.name, _MAX_BYTES)
    return None
