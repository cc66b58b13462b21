"""The shapes that go over the wire. `docs/http_api.md` shows an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from tdbg_lab.records import Severity

__all__ = [
    "AskedJson",
    "CostJson",
    "FindingCounts",
    "FindingMessage",
    "GpuJson",
    "HostMessage",
    "JobJson",
    "JobMessage",
    "Message",
    "PendingJson",
    "PongMessage",
    "RemovedMessage",
    "RuleJson",
    "RunDetail",
    "RunMessage",
    "RunSummary",
    "RunsMessage",
    "TensorJson",
    "ThresholdJson",
]

Number = float | int | str
"""A number; NaN and the infinities travel as ``"NaN"``, ``"Infinity"``, ``"-Infinity"``."""


class FindingCounts(TypedDict):
    """Findings by severity."""

    notice: int
    warning: int
    critical: int


class CostJson(TypedDict):
    """What tdbg-lab costs this run: averages over the steps up to the last saved one."""

    capture_ms: float | None
    step_ms: float | None
    share: float | None
    """Part of a step spent in capture, 0 to 1."""
    bytes_written: int | None
    save_every: int | None
    """Distance of saved steps, where it was chosen as training went on."""


class RunSummary(TypedDict):
    """A line of the list of runs."""

    id: str
    name: str
    root: str
    """Name of the run root."""
    path: str
    """POSIX path relative to the run root."""
    status: str
    created_ns: int
    ended_ns: int | None
    last_step: int
    """-1 when there is none, or the run has not been read yet."""
    last_write_ns: int | None
    steps_per_second: float | None
    tags: list[str]
    notes: str
    framework: str
    loss: list[list[Number]] | None
    """At most 64 pairs of step and value."""
    findings: FindingCounts
    open: bool
    """Whether the server keeps it current."""


class RunDetail(RunSummary):
    """Everything about one run that is not a picture."""

    version: int
    ranks: list[int]
    modes: list[str]
    first_step: int
    hyperparameters: dict[str, Any]
    git: dict[str, Any] | None
    host: str
    cost: CostJson | None
    error: str | None


class TensorJson(TypedDict):
    """A line of the tree of tensors."""

    name: str
    kind: str
    module: str
    dtype: str
    shape: list[int]
    collections: list[str]
    findings: int
    severity: Severity | None
    """Of the worst finding on it."""


class ThresholdJson(TypedDict):
    """A threshold of a rule."""

    name: str
    type: str
    """As it is written in the source: ``float``, ``int | None``."""
    default: Number | bool | None
    help: str


class RuleJson(TypedDict):
    """A rule there is."""

    name: str
    title: str
    group: str
    explanation: str
    """What it sees, one paragraph."""
    thresholds: list[ThresholdJson]


class PendingJson(TypedDict):
    """A better picture is being computed."""

    job: str
    progress: float
    message: str


class RunMessage(TypedDict):
    """A watched run moved on."""

    type: Literal["run"]
    summary: RunSummary
    version: int
    last_step: int


class RemovedMessage(TypedDict):
    """A watched run is gone."""

    type: Literal["removed"]
    id: str


class RunsMessage(TypedDict):
    """The list of runs changed."""

    type: Literal["runs"]


class JobJson(TypedDict):
    """Where a job stands."""

    job: str
    progress: float
    message: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]


class AskedJson(JobJson):
    """Work that was asked for: a check of a recorded run with other thresholds, or a report."""

    result: dict[str, Any] | None
    """Of a check ``state``, ``findings`` and how many were ``found``, of a report ``file`` and ``bytes``;
    null before it is done."""


class JobMessage(JobJson):
    """A job moved on."""

    type: Literal["job"]


class FindingMessage(TypedDict):
    """A rule found something in a watched or running run."""

    type: Literal["finding"]
    run: str
    finding: dict[str, Any]


class GpuJson(TypedDict):
    """A GPU; null is what it does not tell."""

    device: str
    """``gpu0``, ``gpu1``, ... by NVML's index."""
    name: str
    percent: float | None
    """Of the time some kernel ran."""
    memory_used: int | None
    """Bytes, by all processes."""
    memory_total: int | None
    temperature_c: float | None
    power_w: float | None
    answers: bool
    """False while its driver hangs; nothing else is known then."""


class HostMessage(TypedDict):
    """How busy the machine of the server is; null is what it does not tell."""

    type: Literal["host"]
    time_ns: int
    cpu: float | None
    """Percent of `cores`."""
    cores: float | None
    """Number of cores, or the container's share of them."""
    memory_used: int | None
    """Bytes; of the container where it has a limit."""
    memory_total: int | None
    swap: float | None
    """Percent of the swap space; null where there is none."""
    disk_read: float | None
    """Bytes per second, as the next three."""
    disk_write: float | None
    net_recv: float | None
    net_sent: float | None
    gpus: list[GpuJson]
    gpu_problem: str
    """Why some or all GPUs cannot be read, in a sentence; empty when all can."""


class PongMessage(TypedDict):
    """Answer to a ping."""

    type: Literal["pong"]


Message = RunMessage | RemovedMessage | RunsMessage | JobMessage | FindingMessage | HostMessage | PongMessage
