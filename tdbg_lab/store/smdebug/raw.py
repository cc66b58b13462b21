"""Which values a store has, as the reading engine of `tdbg_lab.run.Run` asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tdbg_lab.store.schema import mode_code
from tdbg_lab.store.smdebug.state import SmdebugState, code_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode
    from tdbg_lab.store.smdebug.index_file import IndexFile

__all__ = ["SavedValue", "SmdebugRaw"]


class SavedValue(NamedTuple):
    """One saved value of a tensor."""

    step: int
    file: IndexFile
    position: int


class SmdebugRaw:
    """Values of a store by tensor."""

    def __init__(self, state: SmdebugState) -> None:
        self._state = state

    def refresh(self) -> bool:
        """The rows' refresh reads what is new."""
        return False

    def names(self) -> set[str]:
        """Tensors with a value at some step."""
        layouts = {id(file.layout): file.layout for file in self._state.store.files}
        return {name for layout in layouts.values() for name in layout.values}

    def files(self, name: str, mode: Mode | str | None, rank: int | None) -> list[SavedValue]:
        """Values of a tensor, by step and worker.

        No `mode` means train when there is any, else the first there is.
        """
        if name not in self._state.store:
            return []
        files = [
            SavedValue(file.step, file, position)
            for file in self._state.store.tensor_files(name)
            if (position := file.layout.values.get(name)) is not None
            and (rank is None or self._state.rank(file.worker) == rank)
        ]
        codes = [code_of(saved.file) for saved in files]
        code = mode_code(mode) if mode is not None else min(codes, default=0)
        return (
            files if set(codes) == {code} else [f for f, of in zip(files, codes, strict=True) if of == code]
        )

    def read(self, file: SavedValue, name: str) -> NDArray[Any]:  # noqa: ARG002 - the record knows it
        """One value; `name` is its tensor.

        Raises
        ------
        StoreError
            If it cannot be read.
        """
        return self._state.store.read(file.file, file.position)

    def column(self, files: Sequence[SavedValue], name: str) -> list[NDArray[Any] | None]:
        """Values of one tensor, in the order of `files`; None for those that cannot be read."""
        return self._state.store.column([saved.file for saved in files], name)
