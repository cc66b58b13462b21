"""Reading tensors, reductions, shapes, modes and workers of stores, whole, growing and broken."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.errors import ConfigError, NotFoundError, StepNotFoundError, StoreError
from tdbg_lab.store.smdebug import SmdebugStore, is_smdebug_store
from tests.store.smdebug.writing import DTYPES, StoreWriter

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    return StoreWriter(tmp_path / "store")


@pytest.mark.parametrize("dtype", DTYPES)
def test_value_is_exact_in_every_dtype(writer: StoreWriter, dtype: str) -> None:
    value = (np.arange(24).reshape(2, 3, 4) - 5) * (1 + 2j if dtype.startswith("complex") else 1)
    value = value.astype(dtype)
    writer.write(0, {"x": value})
    read = SmdebugStore(writer.path).value("x", 0)
    assert read.dtype == value.dtype
    assert read.shape == value.shape
    assert read.tobytes() == value.tobytes()
    assert read.flags.writeable


def test_value_keeps_nan_payloads_text_scalars_and_empty_shapes(writer: StoreWriter) -> None:
    odd = np.array([0x7FC00001, 0xFF800000, 0x80000000], np.uint32).view(np.float32)
    text = np.array(["loss", "", "é"])
    empty = np.empty((0, 3), np.float64)
    writer.write(0, {"odd": odd, "text": text, "scalar": np.float32(2.5), "empty": empty})
    store = SmdebugStore(writer.path)
    assert store.value("odd", 0).tobytes() == odd.tobytes()
    assert store.value("text", 0).tolist() == text.tolist()
    assert store.value("scalar", 0).shape == ()
    assert store.value("scalar", 0) == np.float32(2.5)
    assert store.value("empty", 0).shape == (0, 3)


def test_values_follow_steps_over_changes_of_length_and_shape(writer: StoreWriter) -> None:
    """The decoder reuses what it found in one record: growing numbers and batches must not mislead it."""
    expected = {}
    for step in [0, 5, 9, 10, 99, 100, 127, 128, 129, 1000, 16384, 999_999]:
        shape = (3, 4) if step % 2 else (4, 3)
        expected[step] = np.full(shape, step, np.float32)
        writer.write(step, {"a": expected[step], "b": expected[step] + 0.5}, mode_step=step // 3)
    store = SmdebugStore(writer.path)
    for shift, name in ((0.0, "a"), (0.5, "b")):
        found = store.values(name)
        assert list(found) == list(expected)
        for step, value in expected.items():
            np.testing.assert_array_equal(found[step], value + shift)
            np.testing.assert_array_equal(store.value(name, step), value + shift)


def test_modes_have_global_and_mode_steps(writer: StoreWriter) -> None:
    plan = [("TRAIN", 0), ("TRAIN", 1), ("EVAL", 0), ("TRAIN", 2), ("EVAL", 1), ("PREDICT", 0)]
    for step, (mode, mode_step) in enumerate(plan):
        writer.write(
            step, {"loss": np.float32(step), mode.lower(): np.float32(0)}, mode=mode, mode_step=mode_step
        )
    store = SmdebugStore(writer.path)
    assert store.modes() == ["TRAIN", "EVAL", "PREDICT"]
    assert store.steps() == [0, 1, 2, 3, 4, 5]
    assert store.steps("TRAIN") == [0, 1, 2]
    assert store.steps("EVAL") == [0, 1]
    assert store.mode_step(4) == ("EVAL", 1)
    assert store.global_step("EVAL", 1) == 4
    assert store.global_step("EVAL", 7) is None
    assert store.mode_step(9) is None
    assert store.names("EVAL") == ["eval", "loss"]
    assert store.names(step=5) == ["loss", "predict"]
    assert store.tensor_steps("loss", "EVAL") == [0, 1]
    assert store.tensor_steps("eval") == [2, 4]


def test_mode_that_does_not_exist_is_refused(writer: StoreWriter) -> None:
    writer.write(0, {"loss": np.float32(0)}, mode="EVAL", mode_step=0)
    store = SmdebugStore(writer.path)
    said = "mode is 'eval'; expected TRAIN, EVAL, PREDICT or GLOBAL"
    for ask in (
        lambda: store.steps("eval"),
        lambda: store.global_step("eval", 0),
        lambda: store.names("eval"),
        lambda: store.tensor_steps("loss", "eval"),
    ):
        with pytest.raises(ConfigError, match=said):
            ask()


def test_reductions_and_shapes_stand_beside_values(writer: StoreWriter) -> None:
    weight = np.arange(6, dtype=np.float32)
    tensors = {
        "w": weight,
        "smdebug/reductions/mean/w": weight.mean(),
        "smdebug/reductions/abs_l2/w": np.float32(np.linalg.norm(weight)),
        "smdebug/reductions/max/only/reduced": np.float32(3),
    }
    writer.write(0, tensors, shapes={"w": (6,), "shape": (2, 0, 5)})
    store = SmdebugStore(writer.path)
    assert store.names() == ["only/reduced", "shape", "w"]
    np.testing.assert_array_equal(store.value("w", 0), weight)
    assert store.reductions("w", 0) == [("mean", False), ("l2", True)]
    assert store.reduction("w", 0, "mean") == np.float32(2.5)
    assert store.reduction("w", 0, "l2", abs=True) == np.float32(np.linalg.norm(weight))
    assert store.shape("w", 0) == (6,)
    assert store.shape("shape", 0) == (2, 0, 5)
    assert store.original_name("w") == "W"
    assert not store.has_value("only/reduced", 0)
    with pytest.raises(StepNotFoundError, match="The absolute mean of w was not saved at step 0"):
        store.reduction("w", 0, "mean", abs=True)
    with pytest.raises(StepNotFoundError, match="The value of only/reduced was not saved at step 0"):
        store.value("only/reduced", 0)
    with pytest.raises(StepNotFoundError, match="Nothing of w was saved at step 3"):
        store.value("w", 3)
    with pytest.raises(NotFoundError, match="There is no tensor 'v' in this store"):
        store.value("v", 0)


def test_workers_complete_a_step_together(writer: StoreWriter) -> None:
    writer.num_workers = 2
    device = "_job-worker_replica-0_task-1_device-GPU-0"
    writer.write(0, {"x": np.float32(1)})
    store = SmdebugStore(writer.path)
    assert store.last_complete_step == -1
    writer.write(0, {"x": np.float32(2)}, worker=device)
    writer.write(1, {"x": np.float32(3)})
    assert store.refresh()
    name = "/job:worker/replica:0/task:1/device:GPU:0"
    assert store.workers == store.collection_workers == [name, "worker_0"]
    assert store.last_complete_step == 0
    assert store.step_workers(1) == ("worker_0",)
    assert store.value("x", 0) == 2  # the first by name
    assert store.value("x", 0, "worker_0") == 1
    assert store.values("x", worker="worker_0").keys() == {0, 1}
    with pytest.raises(NotFoundError, match="saved nothing of x at step 1"):
        store.value("x", 1, name)
    writer.end()
    store.refresh()
    assert store.ended
    assert store.last_complete_step == 1


def test_refresh_reads_what_is_new_and_nothing_unfinished(writer: StoreWriter) -> None:
    writer.live()
    store = SmdebugStore(writer.path)
    assert store.claimed
    assert store.names() == []
    assert not store.refresh()
    for step in range(3):
        index = writer.write(step, {"x": np.float32(step)})
        index.with_name("000000000009_worker_0.json.tmp").write_text("{")
        assert store.refresh()
        assert store.steps() == list(range(step + 1))
        assert not store.refresh()
    version = store.version
    (writer.path / "claim.smd").unlink()
    writer.end()
    assert store.refresh()
    assert store.ended
    assert not store.claimed
    assert store.version == version + 1


def test_half_written_index_is_told_once_and_read_when_it_is_whole(writer: StoreWriter) -> None:
    writer.write(0, {"x": np.float32(0)})
    index = writer.write(1, {"x": np.float32(1)})
    whole = index.read_bytes()
    index.write_bytes(whole[:40])
    store = SmdebugStore(writer.path)
    assert store.steps() == [0]
    assert store.problems == [f"The index {index.name} cannot be read: it is not valid JSON."]
    store.refresh()
    assert len(store.problems) == 1
    index.write_bytes(whole)
    assert store.refresh()
    assert store.problems == []
    assert store.value("x", 1) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "events/../../x.tfevents"}},
            "outside",
        ),
        ({"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "/etc/passwd"}}, "outside"),
        ({"meta": {"mode": "LUNCH", "mode_step": 0}}, "mode 'LUNCH'"),
        ({"meta": {"mode": "TRAIN", "mode_step": -4}}, "negative"),
        ({"tensor_payload": [{"tensorname": "x", "start_idx": -1, "length": 4}]}, "points outside"),
        ({"tensor_payload": [{"tensorname": "x", "start_idx": 0, "length": 2**60}]}, "points outside"),
        ({"tensor_payload": [{"tensorname": "x" * 5000, "start_idx": 0, "length": 4}]}, "no proper name"),
        ({"tensor_payload": [{"tensorname": ["x"], "start_idx": 0, "length": 4}]}, "no index of smdebug"),
        ({"tensor_payload": 7}, "no index of smdebug"),
        ({"shape_payload": [{"tensorname": "x", "shape": [1] * 99}]}, "impossible shape"),
    ],
)
def test_index_that_cannot_be_is_refused(writer: StoreWriter, change: dict[str, object], said: str) -> None:
    writer.write(0, {"good": np.float32(0)})
    index = writer.write(1, {"x": np.float32(1)})
    index.write_text(json.dumps({**json.loads(index.read_text()), **change}))
    store = SmdebugStore(writer.path)
    assert store.names() == ["good"]
    (problem,) = store.problems
    assert said in problem


def test_broken_event_files_cost_only_their_own_values(writer: StoreWriter) -> None:
    index = [writer.write(step, {"x": np.full(100, step, np.float32)}) for step in range(5)]
    events = [writer.path / json.loads(path.read_text())["meta"]["event_file_name"] for path in index]
    events[0].write_bytes(events[0].read_bytes()[:200])
    events[1].unlink()
    data = bytearray(events[2].read_bytes())
    data[data.index(b"\x0a\x01x") + 2] = ord("y")
    events[2].write_bytes(data)
    data = bytearray(events[3].read_bytes())
    data[:8] = struct.pack("<Q", 2**50)
    events[3].write_bytes(data)
    store = SmdebugStore(writer.path)
    for step, said in enumerate(["shorter than its index says", "No such file", "holds 'y'", "cut off"]):
        with pytest.raises(StoreError, match=said) as caught:
            store.value("x", step)
        assert str(writer.path) not in str(caught.value)
    assert store.value("x", 4)[0] == 4


def test_links_are_not_followed(writer: StoreWriter, tmp_path: Path) -> None:
    writer.write(0, {"x": np.float32(0)})
    (writer.path / "events").rename(tmp_path / "elsewhere")
    (writer.path / "events").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot be read"):
        SmdebugStore(writer.path).value("x", 0)
    (writer.path / "index").rename(tmp_path / "index")
    (writer.path / "index").symlink_to(tmp_path / "index")
    assert SmdebugStore(writer.path).names() == []


def test_store_that_was_written_anew_is_read_anew(writer: StoreWriter) -> None:
    import shutil

    writer.write(0, {"old": np.float32(0)})
    store = SmdebugStore(writer.path)
    shutil.rmtree(writer.path)
    writer.write(0, {"new": np.float32(1)})
    assert store.refresh()
    assert store.names() == ["new"]


def test_collections_apply_names_and_expressions(writer: StoreWriter) -> None:
    writer.collections = {
        "losses": {"include_regex": ["[Ll]oss_(?!input).*output"]},
        "listed": {"tensor_names": ["fc.weight", "not there"]},
        "evil": {"include_regex": ["(a+)+$", "*("]},
    }
    writer.write(
        0, {"CrossEntropyLoss_output_0": np.float32(0), "fc.weight": np.ones(2), "a" * 60 + "!": np.ones(2)}
    )
    began_s = time.process_time()
    store = SmdebugStore(writer.path)
    assert store.collections_of("CrossEntropyLoss_output_0") == ("losses",)
    assert store.collections_of("fc.weight") == ("listed",)
    assert time.process_time() - began_s < 20  # the expression would take for ever
    assert store.collections["losses"].include_regex == ("[Ll]oss_(?!input).*output",)
    assert any("'*('" in problem for problem in store.problems)


def test_folders_of_others_are_no_stores(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "html").mkdir()
    (tmp_path / "events").mkdir()
    assert not is_smdebug_store(tmp_path)
    with pytest.raises(NotFoundError, match="expected the folders collections, index and events"):
        SmdebugStore(tmp_path)
