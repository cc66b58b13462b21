"""What the commands of `%tdbg` do; each is an ordinary function over the public ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.registry import flush, open_handles
from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.nearest import did_you_mean
from tdbg_lab.notebook.arguments import Parsed, command_named, help_text, parse
from tdbg_lab.notebook.names import current_run_path, variable, view_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tdbg_lab.capture import Handle
    from tdbg_lab.capture.auto import AutoWatch
    from tdbg_lab.notebook.rules_table import RulesTable
    from tdbg_lab.run import Run
    from tdbg_lab.views import Param

__all__ = ["attach", "run_line", "watch"]


def run_line(line: str, namespace: Mapping[str, Any]) -> Any:
    """Do what `line`, the text after `%tdbg`, says.

    Returns
    -------
    str
        A text to print, or
    object
        something to display, or None.

    Raises
    ------
    TdbgError
        With one sentence on what is wrong.
    """
    parsed = parse(line)
    flush()
    match parsed.command.name:
        case "attach":
            return attach(parsed, namespace)
        case "detach":
            return _detach(parsed)
        case "status":
            return _status()
        case "show":
            return _show(parsed)
        case "rules":
            return _rules(parsed, namespace)
        case "set":
            return _set(parsed)
        case "stop":
            return _stop(parsed)
        case "profile":
            return _profile(parsed)
        case "report":
            return _report(parsed)
        case _:
            name = parsed.values["command"]
            return help_text(command_named(name) if name else None)


def attach(parsed: Parsed, namespace: Mapping[str, Any]) -> Handle:
    """`tdbg_lab.attach` with the objects that the names on the line stand for."""
    from tdbg_lab.capture import attach as attach_

    values = parsed.values
    if not values["model"] and not values["optimizer"]:
        raise ConfigError("Say what to watch: %tdbg attach --model model --optimizer opt.")
    given = _settings(parsed, namespace)
    if values["loss"]:
        given["loss"] = variable(values["loss"], namespace)
    handle: Handle = attach_(
        _objects(values["model"], namespace), optimizer=_objects(values["optimizer"], namespace), **given
    )
    return handle


def watch(parsed: Parsed, namespace: Mapping[str, Any]) -> AutoWatch | None:
    """What finds by itself what is trained; None where the environment turns everything off."""
    from tdbg_lab.capture.auto import AutoWatch
    from tdbg_lab.capture.switch import is_off

    if is_off():
        return None
    return AutoWatch({"rules": "default", **_settings(parsed, namespace)}, owner="%%tdbg")


def _settings(parsed: Parsed, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `tdbg_lab.attach` that the line gives, but model, optimizer and loss."""
    values = parsed.values
    settings = {
        "rules": _rule_choice(values["rules"], namespace),
        "hyperparameters": variable(values["hyperparameters"], namespace)
        if values["hyperparameters"]
        else None,
        "config": namespace.get(values["config"], values["config"]) if values["config"] else None,
        "collections": _collections(values["collections"], namespace),
        "tags": tuple(values["tag"]),
        "profiler": not values["no_profiler"],
        **{key: values[key] for key in ("store", "save_every", "name", "notes", "sample_rows", "if_exists")},
    }
    return {key: value for key, value in settings.items() if value is not None}


def _objects(names: list[str], namespace: Mapping[str, Any]) -> Any:
    """One object, a dict of several by name, or None."""
    if len(names) <= 1:
        return variable(names[0], namespace) if names else None
    return {name: variable(name, namespace) for name in names}


def _collections(names: list[str], namespace: Mapping[str, Any]) -> Any:
    if len(names) == 1 and names[0] in namespace:
        return namespace[names[0]]
    return names or None


def _rule_choice(words: list[str], namespace: Mapping[str, Any]) -> Any:
    """``None``, ``"none"``, or a list of rule names and rules from variables."""
    if not words:
        return None
    if words in (["default"], ["none"]):
        return words[0]
    from tdbg_lab.rules import Rule, list_rules

    known = ["default", *(rule.name for rule in list_rules())]
    chosen: list[Any] = []
    for word in words:
        value = namespace.get(word)
        if isinstance(value, type) and issubclass(value, Rule):
            chosen.append(value())
        elif isinstance(value, Rule) or word in known:
            chosen.append(word if word in known else value)
        else:
            names = [*known, *(key for key, each in namespace.items() if isinstance(each, Rule))]
            raise NotFoundError(f"There is no rule '{word}'.{did_you_mean(word, names)}")
    return chosen


def _detach(parsed: Parsed) -> str:
    named = parsed.values["run"]
    handles = [each for each in open_handles() if named is None or _same(each.run_path, named)]
    if not handles:
        return f"Nothing is attached to {named}." if named else "Nothing is attached."
    for handle in handles:
        handle.detach()
    return "Detached from " + ", ".join(str(handle.run_path) for handle in handles) + "."


def _same(path: Any, named: str) -> bool:
    from pathlib import Path

    return Path(path).resolve() == Path(named).resolve()


def _status() -> str:
    handles = open_handles()
    if handles:
        return "\n".join(handle.status() for handle in handles)
    try:
        path = current_run_path(None)
    except ConfigError:
        return "Nothing is attached, and there is no run yet."
    run = _open(path)
    where = f"last step {run.last_step}" if run.last_step >= 0 else "no step"
    return f"Nothing is attached. Newest run: {path} ({run.status}, {where})."


def _open(path: str | Path) -> Run:
    from tdbg_lab.run import open_run

    return open_run(path)


def _show(parsed: Parsed) -> None:
    from tdbg_lab.notebook.showing import show
    from tdbg_lab.views import find_view, list_views

    view = find_view(view_named(parsed.values["view"] or "histogram", [each.name for each in list_views()]))
    known = {param.name: param for param in view.params}
    words: dict[str, str | bool] = dict(parsed.more)
    if parsed.values["tensor"] is not None:
        words["tensors" if "tensor" not in known and "tensors" in known else "tensor"] = parsed.values[
            "tensor"
        ]
    params: dict[str, Any] = {}
    for name, word in words.items():
        if name not in known:
            hint = did_you_mean(name, known) or (f" There are: {', '.join(known)}." if known else "")
            raise ConfigError(f"The view '{view.name}' has no parameter '{name}'.{hint}")
        value = param_value(known[name], word)
        match known[name].kind:
            case "run":
                params[name] = current_run_path(value)
            case "runs":
                params[name] = [current_run_path(one) for one in value]
            case _:
                params[name] = value
    show(current_run_path(parsed.values["run"]), view.name, **params)


def param_value(param: Param, word: str | bool) -> Any:  # noqa: FBT001 - True is a word without a value
    """The value that `word`, typed after ``--name``, stands for.

    Raises
    ------
    ConfigError
        It does not fit the kind of the parameter.
    """
    if param.kind == "bool":
        if word is True or str(word).lower() in {"true", "yes", "on", "1"}:
            return True
        if str(word).lower() in {"false", "no", "off", "0"}:
            return False
        raise ConfigError(f"--{param.name} is yes or no, not '{word}'.")
    if word is True:
        raise ConfigError(f"--{param.name} needs a value.")
    text = str(word)
    try:
        if param.kind in {"int", "step"}:
            return int(text)
        if param.kind == "steps":
            return [int(part) for part in text.split(",")]
        if param.kind in {"range", "seconds"}:
            number = int if param.kind == "range" else float
            first, _, last = text.partition(":")
            return [number(end) if end else None for end in (first, last)]
    except ValueError:
        form = {
            "steps": "whole numbers like 0,100",
            "range": "a range like 0:500",
            "seconds": "a range of seconds like 12.5:13",
        }.get(param.kind, "a whole number")
        raise ConfigError(f"--{param.name} takes {form}, not '{text}'.") from None
    return text.split(",") if param.kind in {"tensors", "runs"} else text


def _rules(parsed: Parsed, namespace: Mapping[str, Any]) -> RulesTable | str:
    from tdbg_lab.notebook.rules_table import explain, rules_table

    names = parsed.values["names"]
    if names[:1] == ["explain"]:
        return explain(_one_rule(names[1:]), _run_if_any(parsed))
    run = _open(current_run_path(parsed.values["run"]))
    if names:
        from tdbg_lab.rules import run_rules

        found = run_rules(run, rules=_rule_choice(names, namespace))
        return rules_table(run, found) if found else "These rules found nothing."
    if not run.rule_states():
        return (
            f"No rules are watching the run '{run.info.name}': %tdbg rules default checks it now; "
            "attach with --rules default to have it watched."
        )
    return rules_table(run)


def _one_rule(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise ConfigError("Say which rule: %tdbg rules explain dead_relu.")
    return names[0]


def _run_if_any(parsed: Parsed) -> Run | None:
    try:
        return _open(current_run_path(parsed.values["run"]))
    except (ConfigError, NotFoundError):
        if parsed.values["run"]:
            raise
        return None


def _set(parsed: Parsed) -> str:
    from tdbg_lab.store import SettingChange

    run = _open(current_run_path(parsed.values["run"]))
    values = parsed.values
    if not values["settings"]:
        records = run.setting_changes()
        told = [
            f"{one.change} ({one.by or 'somebody'}): {one.state}. {one.answer}".strip() for one in records
        ]
        return "\n".join(told) or f"No setting of the run '{run.info.name}' was changed."
    changes = [
        SettingChange.parse(text, group=values["group"], optimizer=values["optimizer"] or "")
        for text in values["settings"]
    ]
    for change in changes:
        run.request_setting(change, reason=values["reason"] or "", by="notebook")
    what = ", ".join(map(str, changes))
    return (
        f"Asked the run '{run.info.name}' to set {what} at the end of its current step; "
        "%tdbg set says what came of it."
    )


def _stop(parsed: Parsed) -> str:
    run = _open(current_run_path(parsed.values["run"]))
    run.request_stop(parsed.values["reason"] or "asked for in the notebook", by="notebook")
    return f"Asked the run '{run.info.name}' to stop at the end of its current step."


def _profile(parsed: Parsed) -> str | None:
    from tdbg_lab.notebook.showing import show

    values = parsed.values
    given = {name: values[name] for name in ("steps", "start", "python") if values[name] is not None}
    if values["seconds"] is not None:
        try:
            given["seconds"] = float(values["seconds"])
        except ValueError:
            raise ConfigError(f"--seconds takes a number, not '{values['seconds'][:40]}'.") from None
    if given:
        run = _open(current_run_path(values["run"]))
        run.request_profile(by="notebook", **given)
        return f"Asked the run {run.info.name!r} to profile itself; then %tdbg show operators, or flame."
    show(current_run_path(parsed.values["run"]), "timeline")
    return None


def _report(parsed: Parsed) -> str:
    from tdbg_lab.views.report import report_file, write_report

    run = _open(current_run_path(parsed.values["run"]))
    path = write_report(run, parsed.values["path"] or report_file(run.path))
    return f"Wrote the report to {path}."
