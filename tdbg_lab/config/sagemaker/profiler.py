"""The JSON of SageMaker Debugger's profiler (``profilerconfig.json``), checked."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.config.checking import article
from tdbg_lab.config.sagemaker.values import check_keys, mapping_of, number, seconds, switch, text
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["ProfileRange", "ProfilerJson"]

_MAX_TEXT = 4096
_INTERVAL = "ProfilingIntervalInMilliseconds"
_INTERVALS_MS = (100, 200, 500, 1000, 5000, 60_000)
_RANGE: Mapping[str, Callable[[str, Any], Any]] = {
    "StartStep": number,
    "NumSteps": number,
    "StartTimeInSecSinceEpoch": seconds,
    "DurationInSeconds": seconds,
}
_OWN: Mapping[str, Mapping[str, Callable[[str, Any], Any]]] = {
    "DetailedProfilingConfig": {},
    "DataloaderProfilingConfig": {"MetricsRegex": text},
    "PythonProfilingConfig": {"ProfilerName": text, "cProfileTimer": text},
    "SMDataParallelProfilingConfig": {},
    "HorovodProfilingConfig": {},
}
_CHOICES = {
    "ProfilerName": ("cprofile", "pyinstrument"),
    "cProfileTimer": ("total_time", "cpu_time", "off_cpu_time", "default"),
}
_PARAMETERS: Mapping[str, Callable[[str, Any], Any]] = {
    "ProfilerEnabled": switch,
    "LocalPath": text,
    "RotateMaxFileSizeInBytes": number,
    "RotateFileCloseIntervalInSeconds": seconds,
    "FileOpenFailThreshold": number,
}


@dataclass(frozen=True, slots=True)
class ProfileRange:
    """What one profile covers: some steps, some time, or (neither is given) everything."""

    start_step: int | None = None
    num_steps: int | None = None
    start_s: float | None = None
    """Seconds since 1970."""
    duration_s: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """``ProfilerName``, ``cProfileTimer``, ``MetricsRegex``."""


@dataclass(frozen=True, slots=True)
class ProfilerJson:
    """The configuration of a profiler."""

    enabled: bool
    local_path: str | None = None
    interval_ms: int | None = None
    """Time between two samples of the machine."""
    ranges: Mapping[str, ProfileRange] = field(default_factory=dict)
    """By category: ``DetailedProfilingConfig``, ``PythonProfilingConfig``, ..."""

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> ProfilerJson | None:
        """From the content of a file; None when it says nothing about the profiler.

        Raises
        ------
        ConfigError
            With one sentence for the first thing that is wrong.
        """
        off = switch("DisableProfiler", given.get("DisableProfiler", False))
        interval_ms = _interval_ms(_INTERVAL, given.get(_INTERVAL))
        if "ProfilingParameters" not in given:
            if off or interval_ms is not None:
                return cls(enabled=not off, interval_ms=interval_ms)
            return None
        parameters = _as_spelled(mapping_of(given, "ProfilingParameters"), (*_PARAMETERS, *_OWN, _INTERVAL))
        check_keys(parameters, (*_PARAMETERS, *_OWN, _INTERVAL), "ProfilingParameters")
        within_ms = _interval_ms(f"ProfilingParameters.{_INTERVAL}", parameters.get(_INTERVAL))
        plain = {
            key: check(f"ProfilingParameters.{key}", parameters[key])
            for key, check in _PARAMETERS.items()
            if parameters.get(key) is not None
        }
        ranges = {key: _range(key, parameters[key]) for key in _OWN if parameters.get(key) is not None}
        enabled = bool(parameters) and not off and plain.get("ProfilerEnabled", True)
        return cls(
            enabled=enabled,
            local_path=plain.get("LocalPath"),
            interval_ms=within_ms if interval_ms is None else interval_ms,
            ranges=ranges,
        )


def _as_spelled(given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Keys as `known` spells them: SageMaker Debugger took any case of these.

    Its own documents write both ``DataLoaderProfilingConfig`` and ``DataloaderProfilingConfig``.
    """
    spelled = {key.lower(): key for key in known}
    return {spelled.get(key.lower(), key): value for key, value in given.items()}


def _interval_ms(key: str, given: Any) -> int | None:
    if given is None:
        return None
    value: int = number(key, given, least=1)
    if value not in _INTERVALS_MS:
        allowed = ", ".join(str(one) for one in _INTERVALS_MS)
        raise ConfigError(f"{key} is {value}; expected one of {allowed}.")
    return value


def _range(category: str, value: Any) -> ProfileRange:
    known = {**_RANGE, **_OWN[category]}
    given = _as_spelled(_object(category, value), known)
    check_keys(given, known, category)
    found = {key: known[key](f"{category}.{key}", one) for key, one in given.items()}
    by_step = [key for key in ("StartStep", "NumSteps") if key in found]
    by_time = [key for key in ("StartTimeInSecSinceEpoch", "DurationInSeconds") if key in found]
    if by_step and by_time:
        raise ConfigError(
            f"{category} has both {by_step[0]} and {by_time[0]}; expected a range of steps or one of time."
        )
    for key, choices in _CHOICES.items():
        if key in found and found[key].lower() not in choices:
            raise ConfigError(f"{category}.{key} is {found[key]!r}; expected one of {', '.join(choices)}.")
    return ProfileRange(
        start_step=found.get("StartStep"),
        num_steps=found.get("NumSteps"),
        start_s=found.get("StartTimeInSecSinceEpoch"),
        duration_s=found.get("DurationInSeconds"),
        options={key: found[key] for key in _OWN[category] if key in found},
    )


def _object(category: str, value: Any) -> dict[str, Any]:
    """An object, or the text of one as SageMaker's own tools write it: with a comma after the last pair.

    Its literals are read; nothing is evaluated.
    """
    if isinstance(value, str) and len(value) <= _MAX_TEXT:
        try:
            value = json.loads(re.sub(r",\s*}\s*$", "}", value))
        except (ValueError, RecursionError):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(value.strip())
    if not isinstance(value, Mapping):
        raise ConfigError(f"{category} is {article(value)}; expected an object or the text of one.")
    return {str(key): one for key, one in value.items()}
