"""The settings an adapter passes on to `attach`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from tdbg_lab.capture.companions import check_rules
from tdbg_lab.capture.given import check_given
from tdbg_lab.config import CaptureConfig, load_config
from tdbg_lab.config.checking import closest
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tdbg_lab.capture.stopping import StopReason

__all__ = ["AttachSettings", "checked_settings"]

_CAPTURE = ("save_every", "collections", "sample_rows", "profile_steps", "sample_interval_s")


class AttachSettings(TypedDict, total=False):
    """The arguments of `tdbg_lab.attach` but those that the training itself gives."""

    store: str | Path | None
    save_every: int | Literal["auto"] | None
    collections: Any
    rules: Any
    actions: Any
    config: CaptureConfig | Mapping[str, Any] | str | Path | None
    name: str | None
    hyperparameters: Mapping[str, Any] | None
    tags: Sequence[str]
    notes: str
    if_exists: str
    sample_rows: int | None
    profiler: bool
    profile_steps: tuple[int, int] | None
    sample_interval_s: float | None
    ranks: Any
    strict: bool
    checkpoint: Callable[[StopReason], object] | None
    storage_options: Mapping[str, Any] | None


def checked_settings(owner: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, checked now: when training begins is too late to say that one is wrong.

    Raises
    ------
    ConfigError, NotFoundError
        With one sentence.
    """
    known = list(AttachSettings.__annotations__)
    for key in settings:
        if key not in known:
            raise ConfigError(
                f"{owner} has no setting {key!r}; expected one of {', '.join(sorted(known))}"
                f"{closest(key, known)}."
            )
    capture = {key: settings[key] for key in _CAPTURE if key in settings}
    config = settings.get("config")
    if isinstance(config, str | Path):  # read once: the program may change its directory
        config = load_config(config)
    CaptureConfig.build(config, **capture)
    check_rules(settings.get("rules"))
    check_given(settings)
    return {**settings, "config": config} if config is not None else dict(settings)
