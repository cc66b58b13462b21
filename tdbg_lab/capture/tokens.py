"""The commonest token of a batch: facts ``check/token``, ``check/token_share`` and ``check/token_row``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.notes import check_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TOKEN_FACTS", "commonest_token"]

TOKEN_FACTS = (check_key("token"), check_key("token_share"), check_key("token_row"))
_MAX_TOKEN = 1 << 20


def commonest_token(ids: NDArray[Any], row: int) -> tuple[float, float, float] | None:
    """The commonest id, its share (0 to 1), and how many make a row.

    Parameters
    ----------
    ids
        Whole numbers of any shape, some rows of a batch.
    row
        How many of them a sample has.

    Returns
    -------
    None where there are none, negative ones, or ones too large to be ids; a mask of zeros and ones has none.
    """
    flat = ids.ravel()
    if not flat.size or flat.min() < 0 or not 1 < flat.max() < _MAX_TOKEN:
        return None
    counts = np.bincount(flat)
    token = int(counts.argmax())
    return float(token), float(counts[token]) / flat.size, float(row)
