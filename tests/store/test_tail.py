"""The tail: each record exactly once, whatever happens to the files in between."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tdbg_lab.store import RankWriter, SystemWriter, create_run, tail
from tdbg_lab.store.ipc import BatchReader
from tdbg_lab.store.layout import list_segments
from tdbg_lab.store.schema import STATS
from tdbg_lab.store.seal import seal_segment

from .rows import rows


def drain(follower) -> list[int]:
    """Steps of the chunks that are there now."""
    found = []
    while (chunk := next(follower)) is not None:
        steps = set(chunk.table["step"].to_pylist())
        assert len(steps) == 1
        found += steps
    return found


def test_tail_of_nothing_waits(tmp_path):
    follower = tail(tmp_path / "nowhere")
    assert next(follower) is None
    assert next(follower) is None


def test_tail_gives_each_batch_as_it_comes(tmp_path):
    path = create_run(tmp_path / "run").path
    follower = tail(path)
    assert drain(follower) == []
    writer = RankWriter(path)
    writer.append(rows(0))
    assert drain(follower) == [0]
    writer.append(rows(1))
    writer.append(rows(2))
    assert drain(follower) == [1, 2]
    writer.close()
    assert drain(follower) == []


def test_tail_reads_other_streams_and_ranks(tmp_path):
    path = create_run(tmp_path / "run").path
    for rank in (0, 1):
        writer = RankWriter(path, rank)
        writer.append(rows(rank))
        writer.append_spans(["f"], ["forward"], [1], [2], [0])
        writer.close()
    SystemWriter(path).append(1, ["cpu"], ["cpu"], [1.0])
    follower = tail(path, streams=("stats", "spans", "system"))
    found = []
    while (chunk := next(follower)) is not None:
        found.append((chunk.rank, chunk.stream))
    assert sorted(found) == [(0, "spans"), (0, "stats"), (0, "system"), (1, "spans"), (1, "stats")]


def test_tail_goes_on_from_any_cursor(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path)
    for step in range(6):
        writer.append(rows(step))
    follower = tail(path)
    cursors = [next(follower).cursor for _ in range(6)]
    for live in (True, False):
        if not live:
            writer.close()
        for at, cursor in enumerate(cursors):
            assert drain(tail(path, cursor=cursor)) == list(range(at + 1, 6)), (live, at)


def test_tail_takes_a_broken_cursor_for_the_beginning(tmp_path):
    path = create_run(tmp_path / "run").path
    RankWriter(path, seal=False).append(rows(0))
    for cursor in ("", "x", "[]", "{}", '{"0/stats": 3}', '{"0/stats": [1, "", "", "", ""]}', "[" * 100_000):
        assert drain(tail(path, cursor=cursor)) == [0]


def test_tail_reads_a_new_run_in_the_same_place_from_its_beginning(tmp_path):
    path = tmp_path / "run"
    follower = tail(path)
    for start in (0, 100):
        create_run(path)
        writer = RankWriter(path, seal=False)
        writer.append(rows(start))
        writer.append(rows(start + 1))
        assert drain(follower) == [start, start + 1]
        shutil.rmtree(path)
        assert drain(follower) == []


def test_tail_skips_garbage_and_goes_on(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    (writer.path / "stats-000002.arrows").write_bytes(b"garbage garbage garbage")
    (writer.path / "stats-000003.parquet").write_bytes(b"PAR1 garbage PAR1")
    follower = tail(path)
    assert drain(follower) == [0]
    later = RankWriter(path, seal=False)
    later.append(rows(1))
    assert drain(follower) == [1]


class TailMachine(RuleBasedStateMachine):
    """Whatever is done to the files: no record twice, and none missed that is still there."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.path = self.root / "run"
        create_run(self.path)
        self.writer = RankWriter(self.path, seal=False)
        self.next_step = 0
        self.delivered: list[int] = []
        self.follower = tail(self.path)
        self.cursor: str | None = None

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.look()
            shutil.rmtree(self.root, ignore_errors=True)

    def segments(self):
        return list_segments(self.path / "rank-00000")["stats"]

    def on_disk(self) -> set[int]:
        import pyarrow.parquet as pq

        found: set[int] = set()
        for segment in self.segments():
            if segment.sealed:
                found |= set(pq.read_table(segment.path)["step"].to_pylist())
            else:
                batches = BatchReader(segment.path, STATS).read()
                found |= {batch["step"][0].as_py() for batch in batches}
        return found

    @rule(n=st.integers(1, 3))
    def append(self, n: int) -> None:
        for _ in range(n):
            self.writer.append(rows(self.next_step))
            self.next_step += 1

    @rule()
    def rotate(self) -> None:
        with self.writer._stats._lock:
            self.writer._stats._finish_segment()

    @rule(torn=st.integers(0, 500))
    def crash_and_restart(self, torn: int) -> None:
        stream = self.writer._stats
        if stream._segment is not None and torn:
            data = stream._segment.path.read_bytes()
            with stream._segment.path.open("ab") as file:
                file.write(data[-torn - 600 : -600])
        self.writer = RankWriter(self.path, seal=False)

    @precondition(lambda self: self.closed_segments())
    @rule(data=st.data())
    def seal(self, data) -> None:
        segment = data.draw(st.sampled_from(self.closed_segments()))
        seal_segment(segment)

    def closed_segments(self):
        opened = self.writer._stats._segment
        return [s for s in self.segments() if not s.sealed and (opened is None or s.path != opened.path)]

    @precondition(lambda self: any(not segment.sealed for segment in self.segments()))
    @rule(data=st.data(), share=st.floats(0, 1))
    def truncate(self, data, share: float) -> None:
        self.writer = RankWriter(self.path, seal=False)  # who wrote it is gone
        segment = data.draw(st.sampled_from([s for s in self.segments() if not s.sealed]))
        size = segment.path.stat().st_size
        with segment.path.open("r+b") as file:
            file.truncate(int(size * share))

    @precondition(lambda self: self.segments())
    @rule(data=st.data())
    def delete_segment(self, data) -> None:
        self.writer = RankWriter(self.path, seal=False)
        segment = data.draw(st.sampled_from(self.segments()))
        segment.path.unlink()
        self.writer = RankWriter(self.path, seal=False)  # numbers may be used again

    @rule(anew=st.booleans())
    def delete_directory(self, anew: bool) -> None:  # noqa: FBT001 - hypothesis passes by name
        if anew:
            shutil.rmtree(self.path)
            create_run(self.path)
        else:
            shutil.rmtree(self.path / "rank-00000")
        self.writer = RankWriter(self.path, seal=False)

    @rule()
    def look(self) -> None:
        there = self.on_disk()
        for _ in range(2):  # a look that was left half way ends first, then comes a whole one
            while (chunk := next(self.follower)) is not None:
                self.delivered.append(chunk.table["step"][0].as_py())
                self.cursor = chunk.cursor
        assert there <= set(self.delivered)

    @rule()
    def look_once(self) -> None:
        chunk = next(self.follower)
        if chunk is not None:
            self.delivered.append(chunk.table["step"][0].as_py())
            self.cursor = chunk.cursor

    @rule()
    def resume_from_cursor(self) -> None:
        self.follower = tail(self.path, cursor=self.cursor)

    @invariant()
    def nothing_comes_twice(self) -> None:
        if hasattr(self, "delivered"):
            assert len(self.delivered) == len(set(self.delivered)), self.delivered


TailMachine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestTail = TailMachine.TestCase


def test_tail_goes_past_a_segment_it_may_not_read(tmp_path, monkeypatch):
    from tdbg_lab.store import ipc

    path = create_run(tmp_path / "run").path
    for step in range(3):
        RankWriter(path, seal=False).append(rows(step))
    opened = ipc.open_regular

    def guarded(file):
        if file.name == "stats-000002.arrows":
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file)

    monkeypatch.setattr(ipc, "open_regular", guarded)
    assert drain(tail(path)) == [0, 2]


def test_tail_misses_nothing_when_files_cannot_be_opened_for_a_while(tmp_path, monkeypatch):
    from tdbg_lab.store import ipc, parquet

    path = create_run(tmp_path / "run").path
    for step in range(4):
        writer = RankWriter(path, seal=step < 2)
        writer.append(rows(step))
        if step < 2:
            writer.close()

    def fail(file):
        raise OSError(24, "Too many open files", str(file))

    follower = tail(path)
    with monkeypatch.context() as patched:
        for module in (ipc, parquet):
            patched.setattr(module, "open_regular", fail)
        assert drain(follower) == []
    assert drain(follower) == [0, 1, 2, 3]
