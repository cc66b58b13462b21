"""Which rules with which thresholds, as people write it: names, a mapping, a YAML or JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["as_mapping", "choice_of", "parameters_of"]

MAX_BYTES = 2**20
_SUFFIXES = (".yaml", ".yml", ".json")


def as_mapping(rules: Any) -> Mapping[Any, Any] | None:
    """The mapping that `rules` is, or that stands in the file it names; None for anything else.

    Raises
    ------
    ConfigError
        If a file cannot be read or holds no mapping.
    """
    if isinstance(rules, Mapping):
        return rules
    if isinstance(rules, Path) or (isinstance(rules, str) and rules.endswith(_SUFFIXES)):
        return _read(Path(rules))
    return None


def choice_of(given: Mapping[Any, Any]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Names of rules and their thresholds: the mapping changes what ``"default"`` stands for.

    ::

        {"dead_relu": {"patience": 20}, "overfit": True, "vanishing_gradient": False}

    runs the default rules, with another patience for one of them, with one more, without one.
    ``"default": False`` begins with none.

    Returns
    -------
    names
        ``default`` or nothing, names to add, and names to leave out with a ``-`` before them.
    parameters
        By name.

    Raises
    ------
    ConfigError
        If something is neither True, False nor a mapping of thresholds.
    """
    names: list[str] = [] if given.get("default") is False else ["default"]
    parameters: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is not the name of a rule.")
        if name == "default" and isinstance(value, bool):
            continue
        if value is False:
            names.append(f"-{name}")
        elif value is True or value is None:
            names.append(name)
        elif isinstance(value, Mapping):
            names.append(name)
            parameters[name] = dict(value)
        else:
            raise ConfigError(
                f"{name} is {value!r}; expected true, false or thresholds like {{threshold: 0.1}}."
            )
    return names, parameters


def parameters_of(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Thresholds of ``rule.name=value``, as they come on a command line.

    Raises
    ------
    ConfigError
        If one is not of that form.
    """
    parameters: dict[str, dict[str, str]] = {}
    for text in texts:
        name, dot, rest = text.partition(".")
        field, equals, value = rest.partition("=")
        if not dot or not equals:
            raise ConfigError(f"--param {text!r} is not of the form rule.name=value.")
        parameters.setdefault(name, {})[field] = value
    return parameters


def _read(path: Path) -> Mapping[Any, Any]:
    from tdbg_lab.config.file import parse_yaml

    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}.") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB: that is no list of rules.")
    try:
        value = parse_yaml(data)
    except ValueError as error:
        raise ConfigError(f"{path.name} is neither YAML nor JSON: {error}.") from None
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{path.name} holds a {type(value).__name__}; expected names of rules, each with true, false "
            "or its thresholds."
        )
    return value
