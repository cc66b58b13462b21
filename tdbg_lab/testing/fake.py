"""A made-up run, written through the real writer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.records import (
    Finding,
    Kind,
    Mode,
    RuleState,
    RuleStatus,
    RunStatus,
    Severity,
    StatsRows,
    TensorKey,
    ViewRef,
)
from tdbg_lab.store.findings import FindingsWriter, write_rule_states
from tdbg_lab.store.folder import create_run
from tdbg_lab.store.writer import RankWriter, SystemWriter
from tdbg_lab.testing.blocks import block_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_WIDTH = 16
_BATCH = 32
_CLASSES = 4
_PHASES = (("data", 0.1), ("forward", 0.3), ("backward", 0.4), ("optimizer", 0.15))


def fake_run(
    path: str | Path,
    *,
    steps: int = 20,
    layers: int = 3,
    modes: Sequence[Mode | str] = ("train",),
    seed: int = 0,
    status: RunStatus | str = RunStatus.FINISHED,
    name: str | None = None,
    raw_every: int = 10,
    findings: bool = True,
    close: bool = True,
) -> Path:
    """Write a plausible run and return its directory.

    `layers` layers ``layer0`` ... with weight, bias, gradients and ReLU outputs, losses, learning
    rate, gradient norm, accuracy, costs, raw ``latent`` with labels, spans, samples, rule states and
    (with `findings`) a dying layer that is found. The last layer dies in the second half.

    Parameters
    ----------
    modes
        Other modes than train have rows at every tenth step.
    status
        ``running`` leaves the run as this process's own; ``crashed`` as that of a process that is gone.
    close
        Whether the segments are sealed; without, the last one stays live.
    """
    writing = FakeTraining(path, layers=layers, modes=modes, seed=seed, name=name, raw_every=raw_every)
    for _ in range(steps):
        writing.step()
    if findings:
        writing.find()
    writing.end(status, close=close)
    return writing.path


class FakeTraining:
    """The same, step by step: for tests of what follows a growing run.

    Parameters
    ----------
    step_s
        Time from one step to the next, by what it writes, s.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        layers: int = 3,
        modes: Sequence[Mode | str] = ("train",),
        seed: int = 0,
        name: str | None = None,
        raw_every: int = 10,
        rank: int = 0,
        seal: bool = True,
        step_s: float = 0.05,
    ) -> None:
        self._step_ns = int(step_s * 1e9)
        self.folder = create_run(
            path,
            name=name,
            hyperparameters={"lr": 0.1, "batch_size": _BATCH, "layers": layers, "seed": seed},
            tags=["fake"],
            framework="fake",
        )
        self.path: Path = self.folder.path
        self.done = 0
        self._layers, self._raw_every = layers, raw_every
        self._modes = [Mode(mode) for mode in modes]
        self._random = np.random.default_rng(seed)
        self._writer = RankWriter(self.path, rank, seal=seal)
        self._system = SystemWriter(self.path, rank, seal=seal)
        self._start_ns = time.time_ns()
        self._centers = self._random.normal(0, 1, (_CLASSES, 8))
        self._keys: dict[Mode, tuple[TensorKey, ...]] = {}

    def step(self) -> int:
        """Write the next step; returns its number."""
        step = self.done
        for mode in self._modes:
            if mode == Mode.TRAIN or step % 10 == 0:
                self._write(step, mode)
        self._spans(step)
        self._samples(step)
        if self._raw_every and step % self._raw_every == 0:
            labels = self._random.integers(0, _CLASSES, 64)
            spread = 1.5 / (1 + 0.05 * step)
            latent = self._centers[labels] * 2 + self._random.normal(0, spread, (64, 8))
            tensors: dict[str, NDArray[Any]] = {"latent": latent.astype(np.float32), "latent/labels": labels}
            self._writer.write_raw(step, tensors, mode=Mode.TRAIN)
        self.done += 1
        return step

    def find(self) -> None:
        """Write what a rule would have found."""
        last = self.done - 1
        module = f"layer{self._layers - 1}"
        finding = Finding(
            rule="dead_relu",
            severity=Severity.WARNING,
            step_first=self.done // 2,
            step_last=max(last, 0),
            message=f"75% of the units of {module} never fire.",
            tensor=f"activation/{module}",
            module=module,
            evidence={"dead_frac": 0.75, "dead_units": 12},
            advice=["Lower the learning rate.", "Use LeakyReLU."],
            view=ViewRef("histogram", {"tensor": f"activation/{module}"}),
            time_ns=self._time_ns(last),
            id="dead_relu:" + module,
        )
        writer = FindingsWriter(self.path)
        writer.append(finding)
        writer.close()
        states = [
            RuleState("dead_relu", RuleStatus.ISSUE_FOUND, step_checked=last, findings=1, cost_ms=1.5),
            RuleState("vanishing_gradient", RuleStatus.NO_ISSUE, step_checked=last, cost_ms=0.9),
        ]
        write_rule_states(self.path, states)

    def end(self, status: RunStatus | str = RunStatus.FINISHED, *, close: bool = True) -> None:
        """Close the writers and set the status."""
        self._writer.flush()
        if close:
            self._writer.close()
            self._system.close()
        status = RunStatus(status)
        if status == RunStatus.CRASHED:
            self._pretend_crash()
        elif status != RunStatus.RUNNING:
            error = "RuntimeError: made up" if status == RunStatus.FAILED else None
            self.folder.set_status(status, error, last_step=self.done - 1)

    def _pretend_crash(self) -> None:
        from tdbg_lab.store.info import RUN_FILE
        from tdbg_lab.store.layout import read_json, write_json

        value = read_json(self.path / RUN_FILE)
        write_json(self.path / RUN_FILE, {**value, "process_created_s": 1.0, "process_since_boot_s": 1.0})

    def _time_ns(self, step: int) -> int:
        return self._start_ns + step * self._step_ns

    def _write(self, step: int, mode: Mode) -> None:
        tensors = list(self._tensors(step, mode))
        if mode not in self._keys:
            self._keys[mode] = tuple(key for key, _, _ in tensors)
        block = block_of([array for _, array, _ in tensors], [axis for _, _, axis in tensors])
        self._writer.append(StatsRows(step, mode, 0, self._time_ns(step), self._keys[mode], block))

    def _tensors(self, step: int, mode: Mode) -> Iterator[tuple[TensorKey, NDArray[Any], int | None]]:
        random, training = self._random, mode == Mode.TRAIN
        for i in range(self._layers):
            module = f"layer{i}"
            dying = i == self._layers - 1 and i > 0
            if training:
                weight = random.normal(0.01 * step, 0.2 + 0.001 * step, (_WIDTH, _WIDTH))
                yield _described(f"{module}.weight", Kind.WEIGHT, module, weight), weight, None
                bias = random.normal(-0.01 * step, 0.05, _WIDTH)
                yield _described(f"{module}.bias", Kind.BIAS, module, bias), bias, None
                gradient = (
                    weight
                    * random.normal(0, 0.1 * 0.5 ** (self._layers - i), weight.shape)
                    / (1 + 0.02 * step)
                )
                key = _described(f"gradient/{module}.weight", Kind.GRADIENT, module, gradient)
                yield key, gradient, None
            output = np.maximum(random.normal(-0.04 * step if dying else 0.1, 1, (_BATCH, _WIDTH)), 0)
            yield _described(f"activation/{module}", Kind.ACTIVATION, module, output, ("relu",)), output, 1
        loss = 2.3 * np.exp(-step / 60) + 0.1 + random.normal(0, 0.02) + (0 if training else 0.1)
        yield _described("loss/CrossEntropyLoss", Kind.LOSS, "", np.array(loss)), np.array(loss), None
        accuracy = np.array(1 - 0.9 * np.exp(-step / 50))
        yield _described("accuracy", Kind.SCALAR, "", accuracy), accuracy, None
        if training:
            facts = {
                "optimizer/lr/0": (Kind.OPTIMIZER, 0.1 * 0.99**step),
                "optimizer/grad_norm": (Kind.OPTIMIZER, 1 / (1 + 0.05 * step)),
                "tdbg/capture_ms": (Kind.COST, 1 + random.random()),
                "tdbg/step_ms": (Kind.COST, self._step_ns / 1e6 + random.random()),
                "tdbg/share": (Kind.COST, 0.02),
                "tdbg/bytes_written": (Kind.COST, 5000.0 * (step + 1)),
            }
            for fact, (kind, value) in facts.items():
                yield _described(fact, kind, "", np.array(value)), np.array(value), None

    def _spans(self, step: int) -> None:
        start, starts, durations = self._time_ns(step), [], []
        for _, share in _PHASES:
            starts.append(start)
            durations.append(int(share * self._step_ns))
            start += durations[-1]
        names = [name for name, _ in _PHASES]
        self._writer.append_spans(names, names, starts, durations, [step] * len(names), device="cpu")

    def _samples(self, step: int) -> None:
        wave = 50 + 30 * np.sin(step / 5)
        metrics = ["cpu", "cpu", "cpu", "memory", "memory_bytes", "process_cpu"]
        devices = ["cpu", "cpu0", "cpu1", "memory", "memory", "process"]
        values = [wave, wave + 5, wave - 5, 40 + 0.01 * step, 8e9 + 1e6 * step, wave]
        self._system.append(self._time_ns(step), metrics, devices, values)


def _described(
    name: str, kind: Kind, module: str, array: NDArray[Any], collections: tuple[str, ...] = ()
) -> TensorKey:
    return TensorKey(name, kind, module, "float32", tuple(array.shape), collections)
