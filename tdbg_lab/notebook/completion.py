"""Completion of `%tdbg` lines."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

from tdbg_lab.errors import TdbgError
from tdbg_lab.notebook.arguments import COMMANDS, Command, Option
from tdbg_lab.notebook.names import VIEW_ALIASES, current_run_path, view_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from IPython.core.completer import CompletionContext

__all__ = ["matcher_for", "offers"]

log = logging.getLogger(__name__)

_LINE = re.compile(r"^\s*(?:[\w, ]+=\s*)?(%%?)tdbg(\s.*)$", re.DOTALL)
_ATTACH = COMMANDS[0]


def matcher_for(namespace: Mapping[str, Any]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """A matcher for `IPCompleter.custom_matchers` that offers names of `namespace`."""

    @context_matcher(identifier="tdbg_lab")  # type: ignore[untyped-decorator, unused-ignore]
    def match(context: CompletionContext) -> SimpleMatcherResult:
        line = _LINE.match(context.text_until_cursor)
        if line is None:
            return {"completions": [], "suppress": False}
        try:
            word, found = offers(line[2], namespace, cell=line[1] == "%%")
        except Exception:  # no completion is better than a broken Tab key
            log.debug("could not complete %r", context.text_until_cursor, exc_info=True)
            return {"completions": [], "suppress": False}
        completions = [SimpleCompletion(text, type="tdbg") for text in found]
        return {
            "completions": completions,
            "suppress": bool(found),
            "matched_fragment": word,
            "ordered": True,
        }

    matcher: Callable[[CompletionContext], SimpleMatcherResult] = match
    return matcher


def offers(text: str, namespace: Mapping[str, Any], *, cell: bool = False) -> tuple[str, list[str]]:
    """The word under the cursor, and what it may become.

    Parameters
    ----------
    text
        What stands between `%tdbg` and the cursor.
    cell
        The line is that of a cell magic, which takes the options of attach.
    """
    *before, last = text.split() if text.split() and not text[-1].isspace() else [*text.split(), ""]
    if not cell and not before:
        return last, _starting(last, [command.name for command in COMMANDS])
    command = _ATTACH if cell else next((each for each in COMMANDS if each.name == before[0]), None)
    if command is None:
        return last, []
    given = before if cell else before[1:]
    asked = _asked_for(command, given, last)
    word = last if asked is not None and asked.value == "setting" else re.split(r"[=,]", last)[-1]
    if asked is None:
        known = [f"--{name}" for name in _params(command, given)]
        options = [option.name for option in command.options if option.name.startswith("-")]
        used = set(given) - {option.name for option in command.options if option.many}
        return last, [each for each in _starting(last, [*options, *known]) if each not in used]
    return word, _starting(word, _values(asked, given, namespace), anywhere=asked.value == "tensor")


def _asked_for(command: Command, given: Sequence[str], last: str) -> Option | None:
    """The option whose value is being typed, if one is."""
    named = {option.name: option for option in command.options}
    if last.startswith("-"):
        return named.get(last.split("=", 1)[0]) if "=" in last else None
    if given and given[-1].startswith("-"):
        option = named.get(given[-1]) or Option(given[-1], "", "tensor" if "tensor" in given[-1] else "")
        if not option.flag:
            return option
    words = [option for option in command.options if not option.name.startswith("-")]
    if words and (words[0].many or not given):
        return words[0]
    return None


def _values(option: Option, given: Sequence[str], namespace: Mapping[str, Any]) -> list[str]:
    match option.value:
        case "variable":
            return _variables(option.name, namespace)
        case "command":
            return [command.name for command in COMMANDS]
        case "view":
            from tdbg_lab.views import list_views

            return [view.name for view in list_views()]
        case "tensor":
            return _tensors(given)
        case "rule":
            from tdbg_lab.rules import list_rules

            words = ["explain", "default", "none"] if option.name == "names" else ["default", "none"]
            return [*([] if "explain" in given else words), *(rule.name for rule in list_rules())]
        case "setting":
            return ["learning_rate=", "learning_rate*=", "clip_norm=", "clip_norm=off"]
        case "run":
            return _runs()
        case "if_exists":
            return ["new", "resume", "error"]
        case "distance":
            return ["auto"]
    return _choices(option.name, given)


def _variables(option: str, namespace: Mapping[str, Any]) -> list[str]:
    """Names of variables, those that look right for `option` first."""
    names = sorted(
        name for name, value in namespace.items() if not name.startswith("_") and not _is_code(value)
    )
    return [name for name in names if _fits(option, namespace[name])] or names


def _fits(option: str, value: Any) -> bool:
    """Whether `value` looks like what `option` takes."""
    if option in {"--model", "--loss"}:
        return hasattr(value, "named_parameters")
    if option == "--optimizer":
        return hasattr(value, "param_groups")
    return option != "--hyperparameters" or isinstance(value, dict)


def _is_code(value: Any) -> bool:
    """Whether `value` is a class, a module or a plain function: nothing that is watched."""
    return isinstance(value, type) or type(value).__name__ in {
        "module",
        "function",
        "builtin_function_or_method",
    }


def _tensors(given: Sequence[str]) -> list[str]:
    from tdbg_lab.run import open_run

    named = next((given[i + 1] for i, word in enumerate(given[:-1]) if word == "--run"), None)
    try:
        return open_run(Path(current_run_path(named))).tensor_names()  # at an address: of none, at once
    except TdbgError:
        return []


def _params(command: Command, given: Sequence[str]) -> list[str]:
    """Names of the parameters of the view on the line."""
    if not command.takes_more:
        return []
    from tdbg_lab.views import find_view, list_views

    first = given[0] if given and not given[0].startswith("-") else "histogram"
    try:
        view = find_view(view_named(first, [*(each.name for each in list_views()), *VIEW_ALIASES]))
    except TdbgError:
        return []
    return [param.name for param in view.params if param.name != "tensor"]


def _choices(option: str, given: Sequence[str]) -> list[str]:
    """Choices of a parameter of the view on the line."""
    from tdbg_lab.views import find_view, list_views

    first = given[0] if given and not given[0].startswith("-") else "histogram"
    try:
        view = find_view(view_named(first, [each.name for each in list_views()]))
    except TdbgError:
        return []
    asked = next((param for param in view.params if f"--{param.name}" == option), None)
    if asked is None:
        return []
    return _runs() if asked.kind in {"run", "runs"} else list(asked.choices)


def _runs() -> list[str]:
    """Runs near the working directory."""
    return [str(path.parent) for path in sorted(Path().glob("*/*/run.json"))[:200]]


def _starting(word: str, known: Sequence[str], *, anywhere: bool = False) -> list[str]:
    """What of `known` starts with `word`; with `anywhere`, or for want of these, also what contains it."""
    starting = [each for each in known if each.startswith(word)]
    if starting and not anywhere:
        return starting
    return [*starting, *(each for each in known if word in each[1:] and each not in starting)]
