"""Reading live segments: torn tails, growth byte by byte, and bytes that are not ours."""

from __future__ import annotations

import os
import struct

import pyarrow as pa
import pytest

from tdbg_lab.store import RankWriter, create_run, layout
from tdbg_lab.store.ipc import END_OF_STREAM, BatchReader
from tdbg_lab.store.schema import SPANS, STATS, segment_metadata

from .rows import rows


@pytest.fixture
def segment(tmp_path):
    """A live segment of four batches, and the sizes the file had after each."""
    writer = RankWriter(create_run(tmp_path / "run").path, seal=False)
    sizes = []
    path = writer.path / "stats-000001.arrows"
    for step in range(4):
        writer.append(rows(step))
        sizes.append(path.stat().st_size)
    return path, sizes


def steps_of(batches) -> list[int]:
    return [batch["step"][0].as_py() for batch in batches]


def test_reader_yields_every_complete_batch_when_truncated_at_every_byte(segment, tmp_path):
    path, sizes = segment
    data = path.read_bytes()
    torn = tmp_path / "stats-000002.arrows"
    torn.write_bytes(data)
    for size in range(len(data), -1, -1):
        os.truncate(torn, size)
        reader = BatchReader(torn, STATS)
        assert steps_of(reader.read()) == [step for step, end in enumerate(sizes) if end <= size], size
        assert reader.problem is None, size


def test_reader_yields_each_batch_once_while_the_file_grows_byte_by_byte(segment, tmp_path):
    path, sizes = segment
    data = path.read_bytes()
    grown = tmp_path / "stats-000002.arrows"
    found = []
    with grown.open("wb", buffering=0) as file:
        reader = BatchReader(grown, STATS)
        for size in range(len(data)):
            file.write(data[size : size + 1])
            new = steps_of(reader.read())
            assert new == [step for step, end in enumerate(sizes) if end == size + 1]
            found += new
    assert found == [0, 1, 2, 3]
    assert reader.problem is None


def test_reader_reads_only_what_is_new(segment, monkeypatch):
    path, sizes = segment
    reader = BatchReader(path, STATS)
    reader.read()
    offsets = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: offsets.append(at) or pread(fd, n, at))
    with path.open("ab") as file:
        file.write(path.read_bytes()[sizes[2] : sizes[3]])
    assert len(reader.read()) == 1
    assert offsets == [0, sizes[3]]  # the head, to know the file again, and the new bytes


def test_reader_says_when_the_writer_closed_the_segment(segment):
    path, _ = segment
    reader = BatchReader(path, STATS)
    reader.read()
    assert not reader.ended
    with path.open("ab") as file:
        file.write(END_OF_STREAM)
    reader.read()
    assert reader.ended


def test_reader_notices_that_another_file_took_the_place(segment):
    path, sizes = segment
    reader = BatchReader(path, STATS)
    reader.read()
    other = STATS.with_metadata(segment_metadata("stats", 0, 1, "x", 1)).serialize().to_pybytes()
    path.write_bytes(other + path.read_bytes()[sizes[0] :])
    with pytest.raises(OSError, match="replaced"):
        reader.read()


def compressed(path) -> bytes:
    table = BatchReader(path, STATS).read()[0]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    schema = STATS.with_metadata(segment_metadata("stats", 0, 1, "x", 1))
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_batch(table.replace_schema_metadata(schema.metadata))
    return sink.getvalue().to_pybytes()


HOSTILE = {
    "zeros": lambda data, path: bytes(200),
    "text": lambda data, path: b"hello, I am not an Arrow stream at all",
    "huge header": lambda data, path: struct.pack("<Ii", 0xFFFFFFFF, 2**31 - 8) + data,
    "negative header": lambda data, path: struct.pack("<Ii", 0xFFFFFFFF, -8) + data,
    "broken header": lambda data, path: struct.pack("<Ii", 0xFFFFFFFF, 64) + b"\xff" * 64 + data,
    "other columns": lambda data, path: SPANS.serialize().to_pybytes(),
    "no metadata": lambda data, path: STATS.serialize().to_pybytes(),
    "other format": lambda data, path: (
        STATS.with_metadata({b"tdbg": b'{"format": 99, "uid": "x"}'}).serialize().to_pybytes()
    ),
    "compressed": lambda data, path: compressed(path),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_reader_refuses_bytes_that_are_not_ours_with_a_reason(segment, tmp_path, how):
    path, _ = segment
    bad = tmp_path / "stats-000009.arrows"
    bad.write_bytes(HOSTILE[how](path.read_bytes(), path))
    reader = BatchReader(bad, STATS)
    assert reader.read() == []
    assert reader.problem is not None
    assert "stats-000009.arrows" in reader.problem
    assert str(tmp_path) not in reader.problem


def test_reader_stops_at_a_batch_whose_offsets_lie(segment, tmp_path):
    path, sizes = segment
    data = bytearray(path.read_bytes())
    batch = memoryview(data)[sizes[0] : sizes[1]]
    found = 0
    for at in range(8, len(batch) - 4, 4):  # any aligned 32-bit word may be a length or an offset
        old = bytes(batch[at : at + 4])
        batch[at : at + 4] = struct.pack("<I", 0x7FFFFFF0)
        bad = tmp_path / "stats-000009.arrows"
        bad.write_bytes(data)
        reader = BatchReader(bad, STATS)
        batches = reader.read()
        for good in batches:
            good.to_pylist()  # would crash the process if offsets were taken on trust
        found += reader.problem is not None
        batch[at : at + 4] = old
    assert found


def test_reader_reads_where_the_system_cannot_read_from_a_place(segment, tmp_path, monkeypatch):
    """Windows has no `os.pread`."""
    path, sizes = segment
    data = path.read_bytes()
    grown = tmp_path / "stats-000002.arrows"
    monkeypatch.delattr(os, "pread")
    reader = BatchReader(grown, STATS)
    found = []
    for size in sizes:
        grown.write_bytes(data[:size])
        reader.check()
        found += steps_of(reader.read())
    assert found == [0, 1, 2, 3]
    assert reader.problem is None


def test_link_is_refused_where_the_system_would_follow_it(segment, tmp_path, monkeypatch):
    """Windows has no ``O_NOFOLLOW``."""
    path, _ = segment
    link = tmp_path / "stats-000003.arrows"
    link.symlink_to(path)
    monkeypatch.setattr(layout, "_NO_LINKS", 0)
    monkeypatch.setattr(layout, "_READ_FLAGS", os.O_RDONLY)
    with pytest.raises(OSError, match="symbolic link"):
        BatchReader(link, STATS).read()
    assert BatchReader(path, STATS).read()


def test_reader_does_not_follow_links_or_open_pipes(segment, tmp_path):
    path, _ = segment
    link, pipe = tmp_path / "stats-000003.arrows", tmp_path / "stats-000004.arrows"
    link.symlink_to(path)
    os.mkfifo(pipe)
    for bad in (link, pipe):
        with pytest.raises(OSError, match=r"symbolic|regular"):
            BatchReader(bad, STATS).read()
