"""Profiles on demand: while training goes on, without changing it, and with a word where it cannot be."""

from __future__ import annotations

import gzip
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, ConflictError, StoreError
from tdbg_lab.profiler import recording
from tdbg_lab.store import requests
from tdbg_lab.store.profiles import read_digest
from tests.threads import no_more_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Attach = Callable[..., tdbg.Handle]


class Training:
    """A small convolutional net on fixed data."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.inputs, self.labels = torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))

    def step(self) -> None:
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.inputs), self.labels).backward()
        self.optimizer.step()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def weights(self) -> list[torch.Tensor]:
        return [value.detach().clone() for value in self.model.parameters()]


def answer_of(handle: tdbg.Handle, identity: str) -> tuple[str, str]:
    found = next(one for one in requests(handle.run_path) if one.id == identity)
    return found.state, found.answer or ""


def digest_of(handle: tdbg.Handle, within_s: float = 60.0) -> dict:
    """The digest, which another process makes."""
    deadline = time.monotonic() + within_s
    while True:
        (profile,) = handle.run.profiles()
        if profile.ready:
            return read_digest(profile)
        assert time.monotonic() < deadline, "no digest"
        time.sleep(0.05)


def test_profile_of_steps_has_operators_and_python_functions(attach: Attach) -> None:
    pytest.importorskip("pyinstrument")
    training = Training()
    handle = attach(training.model, optimizer=training.optimizer, save_every=4)
    training.steps(2)
    identity = handle.profile(steps=3)
    assert [one.state for one in handle.run.profile_requests()] == ["requested"]
    training.steps(3)
    assert [one.state for one in handle.run.profile_requests()] == ["recording"]
    training.steps(5)
    handle.detach()
    said = "profiled operators of steps 3 to 5, Python functions of steps 6 to 8: "
    assert answer_of(handle, identity) == ("done", f"{said}rank-00000/profile/step-000000000003")
    digest = digest_of(handle)
    rows = {row["name"]: row for row in digest["operators"]}
    assert rows["aten::conv2d"]["calls"] == 3
    assert rows["aten::convolution_backward"]["bytes"] > 0
    assert "aten::isnan" not in rows  # capture's own operators, of the saved step 4
    assert "tdbg-lab" in digest["trees"]["cpu"]["name"]
    assert rows["aten::conv2d"]["shapes"].startswith("[[8, 1, 8, 8], [4, 1, 3, 3]")
    assert rows["aten::conv2d"]["total_us"] > rows["aten::conv2d"]["self_us"] > 0
    assert [one["step"] for one in digest["steps"]] == [3, 4, 5]
    assert any("test_profiling.py" in name for name in digest["trees"]["cpu"]["name"])
    tree = digest["trees"]["cpu"]
    called = [tree["name"][tree["parent"][i]] for i, name in enumerate(tree["name"]) if "convolution" in name]
    assert "aten::conv2d" in called
    assert any("test_profiling.py" in name for name in digest["trees"]["python"]["name"])
    (profile,) = handle.run.profiles()
    assert (profile.first_step, profile.last_step, profile.problems) == (3, 8, ())
    (asked,) = handle.run.profile_requests()
    assert (asked.id, asked.state, asked.profile) == (identity, "ready", profile.name)
    assert profile.files == ("python.speedscope.json", "trace.json.gz")
    with gzip.open(profile.path / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]


def test_profile_leaves_training_as_it_is(attach: Attach) -> None:
    bare, profiled = Training(), Training()
    bare.steps(12)
    torch.manual_seed(1)
    handle = attach(profiled.model, optimizer=profiled.optimizer, profile_steps=(2, 4))
    profiled.steps(5)
    handle.profile(steps=2, python="calls")
    profiled.steps(7)
    handle.detach()
    assert len(handle.run.profiles()) == 2
    assert all(torch.equal(a, b) for a, b in zip(bare.weights(), profiled.weights(), strict=True))


def test_profile_of_steps_named_in_advance_covers_them(attach: Attach) -> None:
    training = Training()
    with attach(training.model, optimizer=training.optimizer, profile_steps=(0, 2)) as handle:
        training.steps(6)
    digest = digest_of(handle)
    assert [one["step"] for one in digest["steps"]] == [0, 1]
    assert {row["name"]: row["calls"] for row in digest["operators"]}["aten::conv2d"] == 2


def test_profiler_configuration_of_sagemaker_makes_its_profiles(attach: Attach) -> None:
    parameters = {
        "DetailedProfilingConfig": '{"StartStep": 1, "NumSteps": 2, }',
        "PythonProfilingConfig": {"StartStep": 4, "NumSteps": 1, "ProfilerName": "cProfile"},
    }
    training = Training()
    config = {"ProfilingParameters": parameters}
    with attach(training.model, optimizer=training.optimizer, config=config) as handle:
        training.steps(8)
    detailed, python = handle.run.profiles()
    assert (detailed.first_step, detailed.last_step, detailed.problems) == (1, 2, ())
    assert (python.first_step, python.last_step, python.problems) == (4, 4, ())
    assert [name.removesuffix(".gz") for name in detailed.files] == ["trace.json"]
    assert "trace.json" not in {name.removesuffix(".gz") for name in python.files}
    assert any("pstats" in name for name in python.files), "every call, not samples"


def test_profile_of_a_time_waits_for_it(attach: Attach) -> None:
    training, start_s = Training(), time.time() + 0.5
    plan = [{"start_s": start_s, "seconds": 0.05, "python": "off"}]
    with attach(training.model, optimizer=training.optimizer, config={"profiles": plan}) as handle:
        began = time.monotonic()
        while not handle.run.profiles() and time.monotonic() - began < 60:
            training.step()
    (profile,) = handle.run.profiles()
    assert profile.start_ns >= start_s * 1e9


def test_profile_of_seconds_ends_by_itself(attach: Attach) -> None:
    training = Training()
    with attach(training.model, optimizer=training.optimizer) as handle:
        identity = handle.profile(seconds=0.05, python="off")
        began = time.monotonic()
        while not handle.run.profiles() and time.monotonic() - began < 60:
            training.step()
    state, text = answer_of(handle, identity)
    assert state == "done"
    assert text.startswith("profiled operators of step")


def test_profile_cut_by_the_end_of_training_is_kept(attach: Attach) -> None:
    training = Training()
    with attach(training.model, optimizer=training.optimizer) as handle:
        identity = handle.profile(steps=100)
        training.steps(4)
    state, text = answer_of(handle, identity)
    assert state == "done"
    assert text.startswith("profiled operators of steps 1 to 3: ")
    assert text.endswith("(training ended before 100 steps were recorded)")


def test_profile_waits_for_its_step_and_says_when_it_never_comes(attach: Attach) -> None:
    training = Training()
    with attach(training.model, optimizer=training.optimizer) as handle:
        later = handle.profile(steps=2, start=50)
        training.steps(3)
        past = handle.profile(steps=2, start=1)
        training.steps(3)
    assert answer_of(handle, past) == ("refused", "Step 1 is over: the run is at step 4.")
    assert answer_of(handle, later) == (
        "refused",
        "training ended before 2 steps from step 50 on could be profiled",
    )


def test_stop_is_heard_while_a_profile_is_recorded(attach: Attach) -> None:
    training = Training()
    handle = attach(training.model, optimizer=training.optimizer)
    identity = handle.profile(steps=900)
    training.steps(2)
    handle.run.request_stop("enough")
    with pytest.raises(tdbg.TrainingStopped):
        training.steps(200_000)
    assert answer_of(handle, identity)[0] == "done"


def test_profile_beside_a_profiler_of_the_program_leaves_it_alone(attach: Attach) -> None:
    training = Training()
    with attach(training.model, optimizer=training.optimizer) as handle:
        with torch.profiler.profile() as own:
            identity = handle.profile(steps=2, python="off")
            training.steps(4)
        assert any("conv2d" in one.key for one in own.key_averages())
    state, text = answer_of(handle, identity)
    assert state == "refused"
    assert "the program runs torch.profiler itself" in text


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        ({"steps": 0}, "steps of a profile is 0; expected a whole number from 1 to 1000"),
        ({"steps": 5, "seconds": 1}, "give one of them"),
        ({"seconds": float("nan")}, "seconds of a profile is nan; expected a number from 0.05 to 600"),
        ({"start": -1}, "start of a profile is -1; expected a step"),
        ({"python": "maybe"}, "expected one of sampling, calls, off"),
        ({"operators": False, "python": "off"}, "would be empty"),
    ],
)
def test_windows_that_make_no_sense_are_refused(attach: Attach, window: dict, sentence: str) -> None:
    handle = attach(None)
    with pytest.raises(ConfigError, match=sentence):
        handle.profile(**window)
    handle.detach()
    with pytest.raises(ConflictError, match="detached"):
        handle.profile()
    with pytest.raises(ConflictError, match="nothing to profile"):
        tdbg.open_run(handle.run_path).request_profile()


def test_profile_steps_that_are_no_window_are_refused(attach: Attach, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"profile_steps is \(5, 5\).*such as \(100, 105\)"):
        attach(None, profile_steps=(5, 5))
    assert not (tmp_path / "run").exists()


def test_profile_that_no_thread_may_write_is_refused_and_the_next_is_written(attach: Attach) -> None:
    training = Training()
    handle = attach(training.model, optimizer=training.optimizer)
    training.steps(1)
    lost = handle.profile(steps=1, python="off")
    training.steps(1)
    with no_more_threads():
        training.steps(2)
    written = handle.profile(steps=1, python="off")
    assert [one.state for one in handle.run.profile_requests()] == ["refused", "requested"]
    training.steps(4)
    handle.detach()
    assert not handle.problems
    expected = "The profile is not written: no more threads may be started."
    assert answer_of(handle, lost) == ("refused", expected)
    assert answer_of(handle, written)[0] == "done"


def test_profile_that_cannot_be_written_is_refused_and_no_longer_being_recorded(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("No space left on device.")

    training = Training()
    handle = attach(training.model, optimizer=training.optimizer)
    training.steps(1)
    lost = handle.profile(steps=1, python="off")
    training.steps(1)
    with monkeypatch.context() as patched:
        patched.setattr(recording, "write_json", full)
        training.steps(2)
        for one in threading.enumerate():
            if one.name == "tdbg-lab profile":
                one.join()
    assert answer_of(handle, lost) == ("refused", "The profile cannot be written: No space left on device.")
    handle.profile(steps=1, python="off")
    assert [one.state for one in handle.run.profile_requests()] == ["refused", "requested"]
    handle.detach()
