"""Arrays from buffers are what pyarrow itself makes of the same values, and load no pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tdbg_lab.store.arrays import event_array, list_array, number_array, numbers_of, text_array

WRITES = """
import sys
from pathlib import Path
from store.rows import rows
from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.store import RankWriter, SystemWriter, create_run

path = create_run(Path(sys.argv[1]) / "run").path
writer, system = RankWriter(path), SystemWriter(path)
for step in range(4):
    writer.append(rows(step))
    writer.append_scalars([step], [step], [TensorKey("loss", Kind.LOSS)], [0.5], mode=Mode.EVAL)
    writer.append_spans(["a"], ["data"], [step], [1], [step])
    system.append(step, ["cpu"], ["cpu"], [50.0])
writer.close()
system.close()
print("pandas" in sys.modules, sorted(one.suffix for one in path.glob("rank-*/*-*")))
"""


@pytest.mark.parametrize(
    "texts", [[], ["a"], ["conv1.weight", "", "größe", "层"], ["a", None, "b"], [None] * 9]
)
def test_texts(texts):
    made = text_array(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.utf8()))


@pytest.mark.parametrize("shapes", [[], [()], [(3,), (), (2, 5), (7,)]])
def test_lists(shapes):
    values = number_array(np.array([one for shape in shapes for one in shape], np.int64), pa.int64())
    made = list_array(shapes, values)
    made.validate(full=True)
    assert made.equals(pa.array([list(shape) for shape in shapes], pa.list_(pa.int64())))


@pytest.mark.parametrize("values", [[1, 2, 3], (4, 5), np.arange(6), np.arange(6)[::2], []])
def test_events(values):
    for kind in (pa.int64(), pa.float64()):
        assert event_array(values, kind).equals(pa.array(list(values), kind))
    assert event_array(["a", "b"], pa.utf8()).equals(pa.array(["a", "b"]))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_numbers_come_back_from_slices_and_chunks(kind):
    whole = pa.array(range(-3, 20), kind)
    assert numbers_of(whole.slice(4, 7)).tolist() == list(range(1, 8))
    assert numbers_of(pa.chunked_array([whole, whole.slice(20)])).tolist() == [*range(-3, 20), 17, 18, 19]
    assert numbers_of(whole.slice(0, 0)).tolist() == []


def test_writing_and_sealing_load_no_pandas(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WRITES, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    assert done.stdout.strip() == "False ['.parquet', '.parquet', '.parquet']"
