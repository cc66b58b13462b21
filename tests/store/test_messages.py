"""Messages that are filled by hand are, byte for byte, those that pyarrow makes."""

import numpy as np
import pyarrow as pa
import pytest

from tdbg_lab.records import Kind, Mode, StatsRows, TensorKey
from tdbg_lab.stats import reference
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.store.messages import StatsMessages
from tdbg_lab.store.number_rows import NumberRows
from tdbg_lab.store.schema import STATS, StatsEncoder
from tests.store.rows import KEYS, rows


def made_by_pyarrow(made: StatsRows, seq: int) -> bytes:
    return StatsEncoder().encode(made, seq, STATS).serialize().to_pybytes()


def test_messages_of_the_same_keys_are_those_of_pyarrow_however_long_their_lists():
    random, messages = np.random.default_rng(0), StatsMessages()
    for step, n in enumerate((5, 2000, 1, 40, 40, 300)):
        arrays = [random.standard_normal((4, n)), np.zeros((2, 3)), random.standard_normal(n)]
        block = reference.summarize(arrays, channel_axes=[1, 0, None])
        made = StatsRows(step, Mode.TRAIN, step % 2, 10 * step, KEYS, block)
        assert bytes(messages.encode(made, step, STATS)) == made_by_pyarrow(made, step), step


def test_messages_of_numbers_of_several_steps_are_those_of_pyarrow():
    messages, steps = StatsMessages(), np.arange(len(KEYS))
    for seq, mode in enumerate([Mode.TRAIN, Mode.TRAIN, Mode.TRAIN, Mode.EVAL, Mode.EVAL]):
        block = scalar_block([0.5, 0.0, np.nan if seq == 2 else 1e300])
        made = StatsRows(steps + seq, mode, 0, steps * 5, KEYS, block)
        assert bytes(messages.encode(made, seq, STATS)) == made_by_pyarrow(made, seq), seq


@pytest.mark.parametrize("odd", [0.0, -0.0, np.nan, -np.inf, 1e300, 1e-40, -1e-300])
def test_numbers_one_by_one_are_those_of_pyarrow_also_beside_odd_ones(odd):
    random, messages = np.random.default_rng(1), StatsMessages()
    for seq in range(12):
        values = (random.standard_normal(len(KEYS)) * 10.0 ** random.integers(-30, 30, len(KEYS))).tolist()
        if seq in {4, 5, 9}:
            values[seq % len(KEYS)] = odd
        steps = list(range(seq, seq + len(KEYS)))
        numbers = NumberRows(steps, [7 * step for step in steps], KEYS, values, Mode.EVAL, seq % 3)
        expected = made_by_pyarrow(numbers.rows(), seq)
        assert bytes(messages.encode_numbers(numbers, seq, STATS)) == expected, seq
        if seq == 7:  # rows of tensors have the same keys
            messages.encode(rows(seq, mode=Mode.EVAL), seq, STATS)


def test_numbers_that_are_fewer_than_their_keys_are_refused_each_time():
    messages = StatsMessages()
    for seq in range(4):
        short = NumberRows([seq] * len(KEYS), [1] * len(KEYS), KEYS, [0.5], Mode.TRAIN, 0)
        with pytest.raises(ValueError, match="keys but"):
            messages.encode_numbers(short, seq, STATS)
        whole = NumberRows(short.steps, short.time_ns, KEYS, [0.5] * len(KEYS), Mode.TRAIN, 0)
        messages.encode_numbers(whole, seq, STATS)


def test_counts_beyond_32_bits_are_cut_to_the_largest():
    messages, made = StatsMessages(), rows(0)
    messages.encode(made, 0, STATS)
    messages.encode(made, 1, STATS)
    made.block.count[0] = made.block.hist_counts[0] = 2**40
    batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(messages.encode(made, 2, STATS))), STATS)
    assert batch["hist_counts"][0][0].as_py() == 2**32 - 1
    assert batch["count"][0].as_py() == 2**40


@pytest.mark.parametrize("times", [1, 3])
def test_offsets_that_do_not_fit_are_refused_each_time(times):
    messages, made = StatsMessages(), rows(0)
    for _ in range(times):
        messages.encode(made, 0, STATS)
    made.block.hist_offsets[-1] += 1
    with pytest.raises(ValueError, match="offsets"):
        messages.encode(made, 0, STATS)


def test_few_forms_are_kept():
    messages = StatsMessages()
    for i in range(100):
        keys = (TensorKey(f"a{i}", Kind.SCALAR),)
        for seq in range(3):
            messages.encode(StatsRows(seq, Mode.TRAIN, 0, 1, keys, scalar_block([1.0])), seq, STATS)
    assert len(messages._forms) <= 16
