"""Being told when the program has imported a module, without importing it for the program."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["ImportWatch"]


class ImportWatch(MetaPathFinder):
    """Calls back once for each of some modules, when it is there or as soon as it has been imported.

    Parameters
    ----------
    callbacks
        By the module's full name. They must not raise.
    """

    def __init__(self, callbacks: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._waiting = dict(callbacks)

    def start(self) -> None:
        """Call back for what is imported already, and wait for the rest."""
        sys.meta_path.insert(0, self)
        for name in list(self._waiting):
            module = sys.modules.get(name)
            if module is not None and not getattr(module.__spec__, "_initializing", False):
                self.imported(module)

    def stop(self) -> None:
        """Wait no longer. Idempotent."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def imported(self, module: ModuleType) -> None:
        """A module is complete."""
        callback = self._waiting.pop(module.__name__, None)
        if callback is not None:
            callback(module)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, with a loader that tells us; only for what we wait for."""
        if fullname not in self._waiting:
            return None
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _TellingLoader(spec.loader, self)
                return spec
        return None


class _TellingLoader(Loader):
    """Loads as the loader it stands for, takes itself out again, and tells."""

    def __init__(self, loader: Any, watch: ImportWatch) -> None:
        self._loader = loader
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader it stands for."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module as if we were not there, then tell."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._watch.imported(sys.modules.get(module.__name__, module))
