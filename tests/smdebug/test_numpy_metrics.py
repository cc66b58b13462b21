"""`S3NumpySystemMetricsReader`: system metrics in a bucket as matrices and files."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

from tdbg_lab.smdebug.exceptions import SMDebugNotImplementedError, SMDebugValueError
from tdbg_lab.smdebug.profiler.system_metrics_reader import S3NumpySystemMetricsReader
from tdbg_lab.smdebug.profiler.utils import TimeUnits
from tests.store.remote.conftest import bucket, s3_server  # noqa: F401 - fixtures

FIRST = 1_795_260_900
"""A second that begins a group."""
COLUMNS = ["cpu0#CPUUtilization", "gpu0#GPUUtilization"]
EXTRA = ["MemoryUsedPercent#memory"]


def line(second, node, kind, name, dimension, value):
    event = {"Type": kind, "Name": name, "Dimension": dimension, "Value": value, "NodeId": f"algo-{node}"}
    return json.dumps({**event, "Timestamp": FIRST + second}) + "\n"


@pytest.fixture
def address(bucket, monkeypatch):  # noqa: F811
    """Two machines read every 0.5 s for 4 s; the second one misses a second."""
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", json.dumps(bucket.options))
    for node in (1, 2):
        text = ""
        for reading in range(8):
            second = reading / 2
            if node == 2 and 1 <= second < 2:
                continue
            text += line(second, node, "cpu", "cpu0", "CPUUtilization", 10.0 * reading + node)
            text += line(second, node, "gpu", "gpu0", "GPUUtilization", 50.5)
            text += line(second, node, "memory", "MemoryUsedPercent", "memory", 33.3)
            text += line(second, node, "network", "eth0", "ReceiveBytesPerSecond", 7e9)
        key = f"job/profiler-output/system/incremental/2026112111/{FIRST}.algo-{node}.json"
        bucket.write(key, text.encode())
    return bucket.url("job/profiler-output")


def reader(address, folder, **more):
    columns = {name: place for place, name in enumerate([*COLUMNS, *EXTRA])}
    given = {"group_size": 2, "n_nodes": 2, "frequency": 500, **more}
    return S3NumpySystemMetricsReader(address, False, COLUMNS, EXTRA, columns, folder, 100, "time", **given)


def test_matrices_hold_means_of_groups_with_gaps_filled(address, tmp_path):
    found, times, _, accumulated = reader(address, tmp_path).get_events(
        FIRST * 10**6, (FIRST + 10) * 10**6, forward=False
    )
    assert times == [[FIRST * 10**6, (FIRST + 4) * 10**6]]
    assert accumulated is None
    assert [one.dtype for one in found] == [np.uint8, np.uint8]
    np.testing.assert_array_equal(found[0], [[6, 50], [26, 50], [46, 50], [66, 50]])
    np.testing.assert_array_equal(found[1], [[7, 50], [12, 50], [47, 50], [67, 50]])


def test_every_reading_is_kept_in_the_files_of_its_node(address, tmp_path):
    _, _, jagged, _ = reader(address, tmp_path).get_events(FIRST, FIRST + 2, False, TimeUnits.SECONDS)
    (first,), (sizes,) = jagged[0]
    assert first == FIRST * 10**6
    assert sizes.tolist() == [4, 4, 4]
    assert jagged[1][1][0].tolist() == [2, 2, 2]
    name = f"{first}#1.npy"
    values = np.fromfile(tmp_path / "algo-1" / name, np.int32).reshape(101, 3)
    times = np.fromfile(tmp_path / "algo-1" / f"time#{name}", np.int64).reshape(101, 3)
    np.testing.assert_array_equal(values[:4], [[1, 50, 34], [11, 50, 34], [21, 50, 34], [31, 50, 34]])
    assert (values[4:] == -1).all()
    assert times[:4, 0].tolist() == [FIRST * 10**6 + each * 500_000 for each in range(4)]


def test_forward_reads_are_accumulated_into_one_file(address, tmp_path):
    accumulating = reader(address, tmp_path, accumulate_forward=True, accumulate_minutes=0.05)
    answers = [
        accumulating.get_events(FIRST + at, FIRST + at + 1, True, TimeUnits.SECONDS)[3] for at in range(4)
    ]
    assert answers[:3] == [None, None, None]
    first, sizes = answers[3][0]
    assert (first, sizes.tolist()) == (FIRST * 10**6, [6, 6, 6])
    values = np.fromfile(tmp_path / "algo-1" / f"accu_{first}#1.npy", np.int32).reshape(6, 3)
    assert values[:, 0].tolist() == [1, 11, 21, 31, 41, 51]


def test_time_without_readings_is_empty(address, tmp_path):
    found, times, jagged, _ = reader(address, tmp_path).get_events(
        FIRST + 100, FIRST + 104, False, TimeUnits.SECONDS
    )
    assert [one.shape for one in found] == [(0, 2), (0, 2)]
    assert times == []
    assert jagged == [[[], []], [[], []]]


def test_mistakes_get_one_sentence(address, tmp_path):
    with pytest.raises(SMDebugValueError, match="1795260900500000 us is no multiple of a group"):
        reader(address, tmp_path).get_events(FIRST + 0.5, FIRST + 2, False, TimeUnits.SECONDS)
    with pytest.raises(SMDebugNotImplementedError, match="np_store is 's3://bucket/x'; expected a folder"):
        reader(address, "s3://bucket/x")
