"""What the program calls its models and optimizers: names of the variables that hold them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import FrameType

    from torch import nn

__all__ = ["held_with", "lasting", "let_go", "named_as_in_program", "visible"]

_DEEPEST = 3
"""Attributes of attributes from an agent to an optimizer: what holds its parts, a wrapper, the optimizer."""
_MOST_PARTS = 1000
_NOT_THE_PROGRAM = ("torch.", "keras.", "tensorflow.", "tdbg_lab.", "importlib.")


def named_as_in_program(things: Sequence[Any], paths: Mapping[int, str] | None = None) -> dict[str, Any]:
    """Each thing by its path (by id), the name of a model that keeps it, of a variable, or its class.

    One thing alone by ``""``.
    """
    if len(things) == 1:
        return {"": things[0]}
    known = paths or {}
    frames = _program_frames()
    places = _best_first(_places(frames), things)
    named: dict[str, Any] = {}
    for thing in things:
        name = known.get(id(thing)) or _keeper(thing, frames) or _variable(thing, places)
        name = name or _part(thing, frames) or _held_as(thing, frames) or type(thing).__name__.lower()
        unique, number = name, 2
        while unique in named:
            unique, number = f"{name}{number}", number + 1
        named[unique] = thing
    return named


def let_go() -> None:
    """Hold no former values of the program's variables: before Python 3.13 each look keeps what it saw."""
    for frame in _program_frames():
        frame.f_locals  # noqa: B018 - replaces what the last look has kept


def visible(things: Sequence[Any]) -> list[Any]:
    """Those that the running functions of the program can see: held by a variable, or by a model in one."""
    frames = _program_frames()
    return [thing for thing in things if _variable(thing, _places(frames)) or _keeper(thing, frames)]


def held_with(own: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Those of `others` that are held by the object which holds one of `own`, itself or in parts of it.

    Its method is running: agents of libraries keep their models and optimizers so.
    """
    for frame in _program_frames():
        held = {id(part) for _, part in _held_by(_first_argument(frame))}
        if any(id(one) in held for one in own):
            return [one for one in others if id(one) in held]
    return []


def lasting(model: nn.Module, optimizers: Sequence[Any]) -> nn.Module:
    """The model, or the one in it that it was put around for a call only, as a solver of equations does.

    It was when functions hold it that are called by the one which holds an optimizer, and no other.
    """
    frames = _program_frames()
    at = next((at for at, frame in enumerate(frames) if any(_is_seen(one, [frame]) for one in optimizers)), 0)
    if _is_seen(model, frames[at:]) or not _is_seen(model, frames[:at]):
        return model
    own = set(map(id, model.parameters()))
    parts = (part for part in model.modules() if own <= set(map(id, part.parameters())))
    return next((part for part in parts if _is_seen(part, frames[at:])), model)


def _is_seen(thing: Any, frames: Sequence[FrameType]) -> bool:
    return any(value is thing for place in _places(frames) for value in list(place.values()))


def _program_frames() -> list[FrameType]:
    frames = []
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to the program's variables
    while frame is not None:
        if not f"{frame.f_globals.get('__name__', '')}.".startswith(_NOT_THE_PROGRAM):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _best_first(places: Iterable[Mapping[str, Any]], things: Sequence[Any]) -> list[Mapping[str, Any]]:
    """First where most of the things have names: an argument is called otherwise in each function."""
    ids = set(map(id, things))
    return sorted(places, key=lambda place: -len({id(value) for value in list(place.values())} & ids))


def _variable(thing: Any, places: Iterable[Mapping[str, Any]]) -> str:
    for place in places:
        for name, value in list(place.items()):
            if value is thing and name != "self" and not name.startswith("_"):
                return str(name)
    return ""


def _part(thing: Any, frames: Sequence[FrameType]) -> str:
    """What a model calls it that the program holds: one whose parts are called, and not itself."""
    for _, holder in _models(frames):
        for name, part in list(vars(holder).get("_modules", {}).items()):
            if part is thing:
                return str(name)
    return ""


def _keeper(thing: Any, frames: Sequence[FrameType]) -> str:
    """What the program calls the model that keeps this optimizer alone, as each network of an agent does."""
    for name, holder in _models(frames):
        kept = [one for one in list(vars(holder).values()) if hasattr(type(one), "add_param_group")]
        if name != "self" and len(kept) == 1 and kept[0] is thing:
            return name
    return ""


def _held_as(thing: Any, frames: Sequence[FrameType]) -> str:
    """What the object calls it whose method is running, or the part of it that keeps it as its own."""
    for frame in frames:
        for name, part in _held_by(_first_argument(frame)):
            if part is thing:
                return name
    return ""


def _held_by(holder: Any) -> Iterator[tuple[str, Any]]:
    """What an object has as attributes, and attributes of those, by the last name that is public."""
    waiting, seen = [("", holder, 0)], {id(holder)}
    for above, one, depth in waiting:
        if depth == _DEEPEST or hasattr(type(one), "named_children") or len(waiting) > _MOST_PARTS:
            continue
        for name, part in _attributes(one):
            if id(part) not in seen:
                seen.add(id(part))
                public = above if name.startswith("_") else name
                waiting.append((public, part, depth + 1))
                yield public, part


def _attributes(one: Any) -> list[tuple[str, Any]]:
    if isinstance(one, type | ModuleType):
        return []
    try:
        return list(object.__getattribute__(one, "__dict__").items())
    except Exception:  # noqa: BLE001 - it has none, or stands for another object that is not there
        return []


def _first_argument(frame: FrameType) -> Any:
    """The object of a method, or what holds a training that a function is to do."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _models(frames: Sequence[FrameType]) -> Iterator[tuple[str, Any]]:
    """Models that variables hold, by what these are called."""
    for place in _places(frames):
        for name, value in list(place.items()):
            if hasattr(type(value), "named_children"):  # a lazy object that is asked would load itself
                yield str(name), value


def _places(frames: Sequence[FrameType]) -> Iterator[Mapping[str, Any]]:
    """Variables of the running functions, the innermost first, of their first arguments and their modules."""
    for frame in frames:
        yield frame.f_locals
        yield getattr(_first_argument(frame), "__dict__", {})
        yield frame.f_globals
