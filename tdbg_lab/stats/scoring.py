"""numba kernel for what a loss of classes compares: everything about predictions and labels in one sweep.

It stands for some forty calls of numpy on small arrays, most of whose time goes by before they begin. It
knows the ordinary case only, and says when it is not that: then the caller computes it without.
"""
# ruff: noqa: FURB136, PLR0917 - numba compiles flat loops best

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from tdbg_lab.stats.call import CLASS_COLUMNS
from tdbg_lab.stats.jit import REASSOCIATE, kernel, pointer

__all__ = ["score"]

_i32: Any = np.int32
_TOP = np.int32(0x7FFFFFFF)
_INF = np.int32(0x7F800000)
_NEGATIVE_INF = np.int32(~0x7F800000)
"""Keys of the infinities, see `_extent`."""
_SIGN = np.int32(31)
_NEVER = -40.0
"""What is so far below the largest of a row adds nothing to the sum of exponentials."""
_SCORES = 10
_HITS, _CHANCE, _MAJORITY, _LABELS, _ENTROPY, _REST, _REST_HITS, _IGNORED, _SPREAD = range(1, _SCORES)
_PREDICTION, _TARGET, _ROW_SUM, _ROW_LOGSUMEXP, _BATCH_SUM = range(5)
_MIN, _MAX, _SIZE, _ZEROS = range(4)
"""And a count of broken values, which is 0 here."""


@kernel()
def score(memory: int, space: int, target: int) -> None:
    """Predictions and labels, see `tdbg_lab.stats.scores.class_scores`.

    Parameters
    ----------
    memory
        Address of int64: of the predictions ``(n, classes) float32``, `n`, `classes`, address of the labels
        ``(n,) int64``, the label that does not count.
    space
        Address of ``(CLASS_COLUMNS, classes) float64``, anything.
    target
        Address of the results: 1 if this is the ordinary case, else 0; see `scores.NAMES` for the others.
    """
    given = carray(pointer(memory, np.int64), 5)
    n, classes, ignored = given[1], given[2], given[4]
    x = carray(pointer(given[0], np.float32), (n, classes))
    bits = carray(pointer(given[0], np.int32), (n, classes))
    y = carray(pointer(given[3], np.int64), n)
    columns = carray(pointer(space, np.float64), (CLASS_COLUMNS, classes))
    out = carray(pointer(target, np.float64), _SCORES)
    described = carray(pointer(target + 8 * _SCORES, np.float64), (5, 5))
    out[0] = 0.0
    columns[:] = 0.0
    wanted, told, right, moved, square = columns
    described[:] = 0.0
    described[:, _MIN], described[:, _MAX] = np.inf, -np.inf
    predicted = described[_PREDICTION]
    counted, lowest = 0, _TOP
    for i in range(n):
        none, least, most = _extent(bits[i], classes)
        if most >= _INF or least <= _NEGATIVE_INF:
            return
        best = _place(bits[i], most)
        largest = np.float64(x[i, best])
        total, squares, exponentials = _row(x[i], classes, largest)
        predicted[_MAX] = max(predicted[_MAX], largest)
        predicted[_SIZE] += squares
        predicted[_ZEROS] += none
        if least < lowest:
            lowest = least
            predicted[_MIN] = x[i, _place(bits[i], least)]
        _add(described[_ROW_SUM], total)
        _add(described[_ROW_LOGSUMEXP], largest + np.log(exponentials))
        _add_columns(x[i], x[0], classes, moved, square)
        label = y[i]
        _add(described[_TARGET], np.float64(label))
        if label == ignored:
            continue
        if label < 0 or label >= classes:
            return
        counted += 1
        wanted[label] += 1.0
        told[best] += 1.0
        right[label] += np.float64(label == best)
    if not counted:
        return
    spread = 0.0
    for j in range(classes):
        _add(described[_BATCH_SUM], n * np.float64(x[0, j]) + moved[j])
        spread = max(spread, square[j] - moved[j] * moved[j] / n)
    out[_SPREAD] = np.sqrt(spread / n)
    _end(predicted, n * classes)
    _end(described[_BATCH_SUM], classes)
    for k in (_TARGET, _ROW_SUM, _ROW_LOGSUMEXP):
        _end(described[k], n)
    _luck(wanted, told, right, classes, counted, out)
    out[_IGNORED] = 1.0 - counted / n
    out[0] = 1.0


@kernel()
def _extent(bits: Any, n: int) -> Any:
    """(zeros, smallest key, largest key) of ``(n,) int32`` bits of float32, in the order of the floats.

    The key of a non-negative float is its bits, of a negative one ``~magnitude``.
    """
    none, low, high = _i32(0), _TOP, _i32(~_TOP)
    for j in range(n):
        v = bits[j]
        none = _i32(none + _i32(_i32(v & _TOP) == 0))
        key = _i32(v ^ _i32(_i32(v >> _SIGN) & _TOP))
        low = key if key < low else low
        high = key if key > high else high
    return none, low, high


@kernel()
def _place(bits: Any, key: Any) -> int:
    """Where the first element with this key is."""
    v = _i32(key ^ _i32(_i32(key >> _SIGN) & _TOP))
    j = 0
    while bits[j] != v:
        j += 1
    return j


@kernel(fastmath=REASSOCIATE)
def _row(x: Any, n: int, largest: float) -> Any:
    """Sum, sum of squares, and sum of ``exp(x - largest)``, within 1e-8 of it.

    ``exp(d) = exp(d / 256) ** 256`` with the first terms of the series: vector code, unlike a call of exp.
    """
    total, squares, exponentials = 0.0, 0.0, 0.0
    for j in range(n):
        v = np.float64(x[j])
        total += v
        squares += v * v
        gone = v - largest
        d: Any = (gone if gone > _NEVER else _NEVER) * (1 / 256)
        e = 1 / 120 + d * (1 / 720 + d * (1 / 5040))
        e = 1.0 + d * (1.0 + d * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d * e))))
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        exponentials += e
    return total, squares, exponentials


@kernel(fastmath=REASSOCIATE)
def _add_columns(x: Any, first: Any, n: int, moved: Any, square: Any) -> None:
    """Sums of the differences to the first row, and of their squares."""
    for j in range(n):
        d = np.float64(x[j]) - np.float64(first[j])
        moved[j] += d
        square[j] += d * d


@kernel()
def _add(described: Any, value: float) -> None:
    """One more value: least, largest, sum of squares, zeros."""
    described[_MIN] = min(described[_MIN], value)
    described[_MAX] = max(described[_MAX], value)
    described[_SIZE] += value * value
    described[_ZEROS] += np.float64(value == 0)


@kernel()
def _end(described: Any, count: int) -> None:
    """The root mean square and the share of zeros of so many values."""
    described[_SIZE] = np.sqrt(described[_SIZE] / count)
    described[_ZEROS] /= count


@kernel()
def _luck(wanted: Any, told: Any, right: Any, classes: int, counted: int, out: Any) -> None:
    """The same as `tdbg_lab.capture.predictions` tells with numpy, out of counts for each class."""
    common, known = 0, 0
    hits, chance, entropy = 0.0, 0.0, 0.0
    for c in range(classes):
        share = wanted[c] / counted
        hits += right[c]
        chance += share * told[c] / counted
        if wanted[c]:
            known += 1
            entropy -= share * np.log(share)
        if wanted[c] > wanted[common]:
            common = c
    rest = counted - wanted[common]
    out[_HITS], out[_CHANCE], out[_MAJORITY] = hits / counted, chance, wanted[common] / counted
    out[_LABELS], out[_ENTROPY] = known, entropy + (known - 1) / (2 * counted)
    out[_REST] = rest
    out[_REST_HITS] = (hits - right[common]) / rest if rest else 1.0
