"""A Python program, run in this process as ``python`` would run it."""

from __future__ import annotations

import builtins
import os
import sys
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from tdbg_lab.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """A script, a directory or archive with a ``__main__.py``, or a module, and its arguments."""

    target: str
    arguments: Sequence[str] = ()
    module: bool = False
    """Whether `target` is the name of a module, as after ``python -m``."""

    def prepare(self) -> Callable[[], None]:
        """Find it and set ``sys.argv`` and ``sys.path[0]``; call what is returned to run it.

        What the program raises passes, `SystemExit` and `KeyboardInterrupt` too. ``sys.argv``,
        ``sys.path[0]`` and ``__main__`` stay the program's own as long as the process lives: its
        threads and ``atexit`` functions still need them.

        Raises
        ------
        NotFoundError
            There is no such program.
        """
        sys.argv[:] = ["-m" if self.module else self.target, *self.arguments]
        if self.module:
            _first_on_path(str(Path.cwd()))
            code, main = _of_spec(_module_spec(self.target))
            sys.argv[0] = str(main.__file__)
        elif (spec := _folder_spec(self.target)) is not None:
            _first_on_path(str(Path(self.target).absolute()), always=True)
            code, main = _of_spec(spec)
        else:
            content = _read(Path(self.target))
            _first_on_path(str(Path(self.target).resolve().parent))
            code, main = _of_file(self.target, content)
        return partial(_run, code, main)


def _run(code: CodeType, main: ModuleType) -> None:
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102 - the program the user asked for


def _first_on_path(folder: str, *, always: bool = False) -> None:
    """Put the program's folder where that of the command stood; ``python -P`` has put none there."""
    if sys.flags.safe_path:
        if always:
            sys.path.insert(0, folder)
    else:
        sys.path[0] = folder


def _main_module(**attributes: Any) -> ModuleType:
    main = ModuleType("__main__")
    if sys.version_info < (3, 14):  # later ones work them out when they are asked for
        main.__annotations__ = {}
    main.__dict__.update({"__builtins__": builtins, **attributes})
    return main


# -- scripts --------------------------------------------------------------------------------------


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"The script {str(path)!r} cannot be read: {error.strerror}.") from error


def _of_file(target: str, content: bytes) -> tuple[CodeType, ModuleType]:
    absolute = (
        target if Path(target).is_absolute() else f"{Path.cwd()}{os.sep}{target}"
    )  # as Python: not tidied
    loader: SourceFileLoader | SourcelessFileLoader = SourceFileLoader("__main__", absolute)
    if target.endswith(".pyc"):
        loader = SourcelessFileLoader("__main__", absolute)
        code = loader.get_code("__main__")
    else:
        code = compile(content, absolute, "exec", dont_inherit=True)
    if code is None:
        raise NotFoundError(f"The script {target!r} has no code.")
    return code, _main_module(__file__=absolute, __cached__=None, __loader__=loader)


# -- modules, directories and archives ------------------------------------------------------------


def _module_spec(name: str) -> ModuleSpec:
    """The spec of a module, or of a package's ``__main__``."""
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        if isinstance(error, ImportError) and not _is_part(error.name, name):
            raise  # the program's own: its package imports something that is missing
        raise NotFoundError(f"There is no module named {name!r}: {error}.") from error
    if spec is None:
        raise NotFoundError(f"There is no module named {name!r}.")
    return spec


def _is_part(missing: str | None, name: str) -> bool:
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def _folder_spec(target: str) -> ModuleSpec | None:
    """The ``__main__`` in a directory or an archive; None for what Python cannot look into."""
    path = str(Path(target).absolute())
    return PathFinder.find_spec("__main__", [path]) if Path(path).exists() else None


def _of_spec(spec: ModuleSpec) -> tuple[CodeType, ModuleType]:
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if not isinstance(code, CodeType):
        raise NotFoundError(f"The module {spec.name!r} has no Python code to run.")
    return code, _main_module(
        __spec__=spec,
        __package__=spec.parent,
        __loader__=spec.loader,
        __file__=spec.origin,
        __cached__=spec.cached,
    )
