"""Rows of statistics as Arrow messages, ready to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.store.batch_form import BatchForm
from tdbg_lab.store.schema import StatsEncoder

if TYPE_CHECKING:
    import pyarrow as pa

    from tdbg_lab.records import Mode, StatsRows, TensorKey
    from tdbg_lab.store.number_rows import NumberRows

__all__ = ["StatsMessages"]

_FORMS = 16
_FORM_BYTES = 64 * 2**20
"""Bytes of all forms that are kept."""


class StatsMessages:
    """Encodes rows, and keeps the forms of those tuples of keys that came more than once.

    A message is good until the next one is made.
    """

    def __init__(self) -> None:
        self._encoder = StatsEncoder()
        self._forms: dict[tuple[int, Mode], tuple[tuple[TensorKey, ...], BatchForm | None]] = {}

    def encode(self, rows: StatsRows, seq: int, schema: pa.Schema) -> memoryview:
        """The message of one batch with a row per tensor.

        Raises
        ------
        ValueError
            If keys and block differ in length, or lists in a block do.
        """
        place = id(rows.keys), rows.mode  # the tuple is kept alive here, so its id is not used again
        known = self._forms.get(place)
        if known is not None and known[1] is not None and not rows.block.reasons:
            try:
                return known[1].fill(rows, seq)
            except BaseException:  # interrupted, it may be half filled: it is not used again
                self._forms.pop(place, None)
                raise
        again = known is None and self._encoder.knows(rows.keys)
        batch = self._encoder.encode(rows, seq, schema)
        if again and not rows.block.reasons:
            self._keep(place, rows.keys, batch)
        return memoryview(batch.serialize())

    def encode_numbers(self, numbers: NumberRows, seq: int, schema: pa.Schema) -> memoryview:
        """The message of one batch with a row per number; as `encode`."""
        place = id(numbers.keys), numbers.mode
        known = self._forms.get(place)
        if known is None or known[1] is None or not numbers.ordinary:
            return self.encode(numbers.rows(), seq, schema)
        try:
            return known[1].fill_numbers(numbers, seq)
        except BaseException:
            self._forms.pop(place, None)
            raise

    def _keep(self, place: tuple[int, Mode], keys: tuple[TensorKey, ...], batch: pa.RecordBatch) -> None:
        try:
            form: BatchForm | None = BatchForm(batch)
        except ValueError:  # another pyarrow: it goes on writing all of them itself
            form = None
        self._forms[place] = keys, form
        sizes = [0 if form is None else form.nbytes for _, form in self._forms.values()]
        while len(self._forms) > _FORMS or sum(sizes) > _FORM_BYTES:
            self._forms.pop(next(iter(self._forms)))
            sizes.pop(0)
