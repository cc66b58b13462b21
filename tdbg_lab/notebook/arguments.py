"""What `%tdbg` understands: declared once, for parsing, for help and for completion."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tdbg_lab.errors import ConfigError
from tdbg_lab.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMMANDS", "Command", "Option", "Parsed", "command_named", "help_text", "parse"]

Value = Literal[
    "", "variable", "run", "tensor", "view", "rule", "setting", "command", "number", "distance", "if_exists"
]


@dataclass(frozen=True, slots=True)
class Option:
    """One argument of a command."""

    name: str
    """``--save-every``, or ``view`` for a word without a flag."""
    help: str
    value: Value = ""
    """What it takes; completion offers it."""
    flag: bool = False
    """Takes nothing: it is there or not."""
    many: bool = False
    """May be given several times, or several at once after a comma."""

    @property
    def key(self) -> str:
        """Name in `Parsed.values`."""
        return self.name.lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Command:
    """One word after `%tdbg`."""

    name: str
    help: str
    options: tuple[Option, ...] = ()
    example: str = ""
    takes_more: bool = False
    """Further ``--name value`` pairs go to `Parsed.more`: the parameters of a view."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A line taken apart."""

    command: Command
    values: dict[str, Any]
    """By `Option.key`; None, or ``[]`` for `Option.many`, where nothing was given."""
    more: dict[str, str | bool] = field(default_factory=dict)
    """Parameters of a view, as text; True for a flag without a value."""


_RUN = Option("--run", "directory of a run; default: the one attached last, else the newest", "run")

COMMANDS: tuple[Command, ...] = (
    Command(
        "attach",
        "Watch a model while it trains.",
        (
            Option("--model", "variable that holds the model", "variable", many=True),
            Option("--optimizer", "variable that holds the optimizer", "variable", many=True),
            Option("--loss", "variable that holds the loss module", "variable"),
            Option("--store", "directory for the run; default: runs/ and the time"),
            Option("--save-every", "save every N-th step, or 'auto'; default: 10", "distance"),
            Option(
                "--rules", "'default', 'none', rule names, or variables that hold rules", "rule", many=True
            ),
            Option("--name", "name of the run"),
            Option("--tag", "tag of the run", many=True),
            Option("--notes", "notes on the run, in quotes"),
            Option("--hyperparameters", "variable that holds a dict", "variable"),
            Option("--config", "variable with a configuration, or a JSON or YAML file", "variable"),
            Option("--collections", "variable with collections, or their names", "variable", many=True),
            Option("--sample-rows", "rows of raw activations to keep", "number"),
            Option("--if-exists", "'new' (default), 'resume' or 'error'", "if_exists"),
            Option("--no-profiler", "do not sample CPU, GPU and memory", flag=True),
        ),
        "%tdbg attach --model model --optimizer opt --loss criterion --save-every 5 --rules default",
    ),
    Command("detach", "Stop watching, and close the run.", (_RUN,), "%tdbg detach"),
    Command("status", "Say what is being watched, and what it costs.", (), "%tdbg status"),
    Command(
        "show",
        "Show a view of the run here, and keep it up to date.",
        (
            Option("view", "histograms, losses, overview, timeline, ...; default: histogram", "view"),
            Option("--tensor", "a tensor, or the module it belongs to", "tensor"),
            _RUN,
        ),
        "%tdbg show histograms --tensor conv1",
        takes_more=True,
    ),
    Command(
        "rules",
        "Show what the rules found; with names, check these rules on the run now.",
        (
            Option("names", "rules to check now; or: explain and the name of one", "rule", many=True),
            _RUN,
        ),
        "%tdbg rules explain dead_relu",
    ),
    Command(
        "set",
        "Change a setting of the training at the end of its current step; alone: what was changed so far.",
        (
            Option(
                "settings", "learning_rate=1e-4, lr*=0.1, clip_norm=1.0, clip_norm=off", "setting", many=True
            ),
            Option("--group", "parameter group of the learning rate; default: all", "number"),
            Option("--optimizer", "name of one of several optimizers"),
            Option("--reason", "why, in quotes; the run keeps it"),
            _RUN,
        ),
        "%tdbg set learning_rate*=0.1",
    ),
    Command(
        "stop",
        "Ask the run to stop at the end of its current step.",
        (Option("--reason", "why, in quotes; the run keeps it"), _RUN),
        '%tdbg stop --reason "loss no longer falls"',
    ),
    Command(
        "profile",
        "Show where the time goes; or, with --steps or --seconds, profile operators and Python functions.",
        (
            Option("--steps", "profile this many steps, from the next one on", "number"),
            Option("--seconds", "profile for this long"),
            Option("--start", "step to begin with", "number"),
            Option("--python", "'sampling' (pyinstrument), 'calls' (cProfile) or 'off'"),
            _RUN,
        ),
        "%tdbg profile --steps 5",
    ),
    Command(
        "report",
        "Write one HTML page about the run.",
        (Option("path", "the file; default: the run's name and -report.html"), _RUN),
        "%tdbg report first.html",
    ),
    Command(
        "help",
        "Explain a command.",
        (Option("command", "name of a command", "command"),),
        "%tdbg help attach",
    ),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def command_named(name: str) -> Command:
    """The command of this name.

    Raises
    ------
    ConfigError
        There is none.
    """
    names = [command.name for command in COMMANDS]
    if name not in names:
        hint = did_you_mean(name, names) or f" There are: {', '.join(names)}."
        raise ConfigError(f"There is no command '%tdbg {name}'.{hint}")
    return COMMANDS[names.index(name)]


def parse(line: str) -> Parsed:
    """Take the text after `%tdbg` apart.

    Raises
    ------
    ConfigError
        With one sentence on what is wrong.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise ConfigError("There is a quotation mark without its partner.") from None
    if not words or words[0] in {"-h", "--help", "-?"}:
        return Parsed(command_named("help"), {"command": None})
    command = command_named(words[0])
    if {"-h", "--help"} & set(words):
        return Parsed(command_named("help"), {"command": command.name})
    parser = _parser(command)
    try:
        known, rest = parser.parse_known_args(words[1:])
    except ConfigError as error:
        raise ConfigError(_sentence(command, str(error))) from None
    if rest and not command.takes_more:
        raise ConfigError(_unknown(command, rest[0]))
    values = vars(known)
    for option in command.options:
        if option.many:
            values[option.key] = _split(values[option.key])
    return Parsed(command, values, _pairs(rest))


def help_text(command: Command | None = None) -> str:
    """Help on one command, or on all."""
    if command is None:
        lines = ["%tdbg watches models while they train. Commands:", ""]
        lines += [f"  {each.name:<8} {each.help}" for each in COMMANDS]
        lines += [
            "",
            "%tdbg help COMMAND explains one. %%tdbg watches for the duration of a cell and takes the",
            "options of attach; without --model it finds by itself what the cell trains, and the",
            "default rules watch it.",
        ]
        return "\n".join(lines)
    lines = [f"%tdbg {command.name}: {command.help}", ""]
    lines += [f"  {option.name:<18} {option.help}" for option in command.options]
    if command.takes_more:
        lines.append("  --PARAMETER VALUE  any parameter of the view")
    return "\n".join([*lines, "", f"Example: {command.example}"])


def _distance(text: str) -> int | str:
    return text if text == "auto" else int(text)


_TYPES: dict[Value, Callable[[str], int | str]] = {"number": int, "distance": _distance}
_TAKES = {"int": "a whole number", "_distance": "a whole number or auto"}
"""What is said of them, by their names: argparse tells those."""


def _parser(command: Command) -> _Parser:
    parser = _Parser(prog=f"%tdbg {command.name}", add_help=False, allow_abbrev=False)
    for option in command.options:
        named = option.name.startswith("-")
        if option.flag:
            parser.add_argument(option.name, action="store_true", dest=option.key)
        elif option.many and named:
            parser.add_argument(option.name, action="append", dest=option.key)
        elif named:
            parser.add_argument(option.name, type=_TYPES.get(option.value, str), dest=option.key)
        else:
            parser.add_argument(option.name, nargs="*" if option.many else "?")
    return parser


def _split(given: list[str] | None) -> list[str]:
    return [part for text in given or () for part in text.split(",") if part]


def _pairs(rest: list[str]) -> dict[str, str | bool]:
    """``["--mode", "eval", "--linear"]`` becomes ``{"mode": "eval", "linear": True}``."""
    pairs: dict[str, str | bool] = {}
    name = ""
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            pairs[name] = value if equals else True
        elif name and pairs[name] is True:
            pairs[name] = word
        else:
            raise ConfigError(f"'{word}' does not belong to an option: write --name value.")
    return pairs


def _unknown(command: Command, word: str) -> str:
    if not word.startswith("-"):
        return f"'%tdbg {command.name}' does not know what to do with '{word}': options start with --."
    known = [option.name for option in command.options]
    name = word.split("=", 1)[0]
    hint = did_you_mean(name, known) or (f" There are: {', '.join(known)}." if known else " It takes none.")
    return f"'%tdbg {command.name}' has no option '{name}'.{hint}"


def _sentence(command: Command, message: str) -> str:
    """What argparse says, as a sentence."""
    option, _, problem = message.removeprefix("argument ").partition(": ")
    if invalid := re.fullmatch(r"invalid (\w+) value: (.*)", problem, re.DOTALL):
        return f"{option} takes {_TAKES[invalid[1]]}, not {invalid[2]}."
    if problem.startswith("expected one argument"):
        return f"{option} needs a value."
    return f"'%tdbg {command.name}': {message}."
