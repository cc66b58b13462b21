from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pynvml
import pytest

from tdbg_lab.profiler.gpu import GpuProbe
from tests.profiler.nvml import FakeNvml
from tests.threads import no_more_threads


def test_fake_has_the_call_surface_of_the_library() -> None:
    names = [name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))]
    assert len(names) >= 10
    assert all(hasattr(pynvml, name) for name in names)


def test_gpu_metrics_have_documented_units() -> None:
    probe, _ = GpuProbe.find(FakeNvml())
    assert probe is not None
    values = {(r.metric, r.device): r.value for r in probe.read()}
    assert values["gpu", "gpu0"] == 73
    assert values["gpu_memory", "gpu1"] == 25
    assert values["gpu_memory_bytes", "gpu0"] == 20 * 2**30
    assert values["gpu_power_w", "gpu0"] == 250.5
    assert values["gpu_temperature_c", "gpu1"] == 61
    assert values["gpu_clock_mhz", "gpu1"] == 1410
    assert values["gpu_memory_clock_mhz", "gpu1"] == 2619
    assert values["gpu_pcie_recv", "gpu0"] == 3000 * 1024
    assert values["gpu_pcie_sent", "gpu0"] == 50 * 1024
    assert values["gpu_throttled_thermal", "gpu0"] == 100
    assert values["gpu_throttled_power", "gpu0"] == 0
    assert ("gpu_power_w", "gpu1") not in values
    assert ("gpu_throttled_thermal", "gpu1") not in values


def test_links_are_told_in_bytes_per_second_where_there_are_some() -> None:
    probe, _ = GpuProbe.find(FakeNvml())
    assert probe is not None
    assert not [r for r in probe.read() if r.metric.startswith("gpu_nvlink")], "a rate needs two readings"
    found = {(r.metric, r.device): r.value for r in probe.read() if r.metric.startswith("gpu_nvlink")}
    assert set(found) == {("gpu_nvlink_recv", "gpu0"), ("gpu_nvlink_sent", "gpu0")}
    assert min(found.values()) > 2**20, "1 MiB within far less than a second"


def test_processes_of_a_gpu_are_counted_and_those_of_the_training_told_apart() -> None:
    nvml = FakeNvml()
    nvml.processes = [
        SimpleNamespace(pid=10, usedGpuMemory=4 * 2**30),
        SimpleNamespace(pid=11, usedGpuMemory=2**30),
        SimpleNamespace(pid=12, usedGpuMemory=None),
        SimpleNamespace(pid=99, usedGpuMemory=8 * 2**30),
    ]
    probe, problem = GpuProbe.find(nvml, own=lambda: (10, 11, 12))
    assert probe is not None
    assert problem == ""
    found = {(r.metric, r.device): r.value for r in probe.read() if r.metric.startswith("gpu_process")}
    assert found == {("gpu_processes", "gpu0"): 4, ("gpu_process_memory_bytes", "gpu0"): 5 * 2**30}


def test_parts_of_a_divided_gpu_are_devices_of_their_own() -> None:
    probe, _ = GpuProbe.find(FakeNvml(divided=True))
    assert probe is not None
    assert probe.devices == ["gpu0", "gpu0:0", "gpu0:2", "gpu1"]
    found = [(r.metric, r.device) for r in probe.read()]
    assert ("gpu_memory_bytes", "gpu0:2") in found
    assert [device for metric, device in found if metric == "gpu"] == ["gpu1"], "NVML tells no load of parts"


def test_gpu_that_hangs_is_told_and_the_others_go_on() -> None:
    nvml = FakeNvml()
    nvml.hung = {"handle0"}
    probe, _ = GpuProbe.find(nvml, limit_s=0.2)
    assert probe is not None
    threads = threading.active_count()
    for _ in range(3):
        begun = time.thread_time()
        readings = list(probe.read())
        assert [r.metric for r in readings if r.device == "gpu0"] == ["gpu_silent"]
        assert ("gpu", "gpu1", 73) in readings
        assert time.thread_time() - begun < 0.1
    assert threading.active_count() <= threads + 2, "no thread for each reading"
    nvml.hung = set()
    nvml.go_on.set()
    deadline = time.monotonic() + 30
    while ("gpu", "gpu0", 73) not in list(probe.read()):
        assert time.monotonic() < deadline, "a device that answers again is read again"
    probe.close()


def test_gpus_are_read_again_once_threads_may_be_started() -> None:
    probe, _ = GpuProbe.find(FakeNvml())
    assert probe is not None
    with no_more_threads():
        assert not list(probe.read()), "nor is a device called silent"
    assert ("gpu", "gpu1", 73) in list(probe.read())
    probe.close()


def test_driver_that_hangs_when_it_is_opened_leaves_a_word() -> None:
    nvml = FakeNvml()
    nvml.hung = {"driver"}
    assert GpuProbe.find(nvml, opening_s=0.05) == (
        None,
        "The NVIDIA driver does not answer: no GPU is read.",
    )
    nvml.go_on.set()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (pynvml.NVML_ERROR_NO_PERMISSION, "This process may not read the GPUs (Insufficient Permissions): "),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "No NVIDIA driver was found: no GPU is read."),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "No NVIDIA driver was found: no GPU is read."),
        (pynvml.NVML_ERROR_UNKNOWN, "The GPUs cannot be read: Unknown Error."),
    ],
)
def test_library_that_does_not_open_says_why(error: int, sentence: str) -> None:
    nvml = FakeNvml()
    nvml.error = error
    probe, problem = GpuProbe.find(nvml)
    assert probe is None
    assert problem.startswith(sentence)


def test_unsupported_metric_is_asked_for_once() -> None:
    nvml = FakeNvml()
    probe, _ = GpuProbe.find(nvml)
    assert probe is not None
    for _ in range(3):
        list(probe.read())
    assert nvml.power_calls.count("handle1") == 1
    assert nvml.power_calls.count("handle0") == 3


def test_lost_device_is_asked_again() -> None:
    nvml = FakeNvml(count=1)
    probe, _ = GpuProbe.find(nvml)
    assert probe is not None
    nvml.lost = True
    assert "gpu" not in {r.metric for r in probe.read()}
    nvml.lost = False
    assert "gpu" in {r.metric for r in probe.read()}


def test_forbidden_device_does_not_hide_the_others() -> None:
    nvml = FakeNvml()
    nvml.forbidden = {0}
    probe, _ = GpuProbe.find(nvml)
    assert probe is not None
    assert probe.devices == ["gpu1"]
    assert GpuProbe.find(nvml)[1] == "gpu0 cannot be read: Insufficient Permissions."
    nvml.forbidden = {0, 1}
    assert GpuProbe.find(nvml) == (None, "gpu0 cannot be read: Insufficient Permissions.")


def test_names_and_memory_are_told_where_nvml_tells_them() -> None:
    nvml = FakeNvml()
    probe, _ = GpuProbe.find(nvml)
    assert probe is not None
    assert [probe.name(device) for device in probe.devices] == ["Fake A100", "Fake A100"]
    assert probe.memory_total("gpu1") == 80 * 2**30
    nvml.lost = True
    assert probe.name("gpu0") == ""
    assert probe.memory_total("gpu0") is None


@pytest.mark.parametrize("nvml", [FakeNvml(driver=False), FakeNvml(count=0)], ids=["no driver", "no device"])
def test_machine_without_gpu_has_no_probe(nvml: FakeNvml) -> None:
    assert GpuProbe.find(nvml)[0] is None


def test_close_shuts_the_library_down() -> None:
    nvml = FakeNvml()
    probe, _ = GpuProbe.find(nvml)
    assert probe is not None
    probe.close()
    assert nvml.open == 0


@pytest.mark.gpu
def test_real_gpu_is_read_when_there_is_one() -> None:
    probe, _ = GpuProbe.find()
    if probe is None:
        pytest.skip("no GPU here")
    values = {r.metric: r.value for r in probe.read()}
    assert 0 <= values["gpu"] <= 100
    assert values["gpu_memory_bytes"] > 0
    assert 0 < values["gpu_power_w"] < 2000
    assert 5 < values["gpu_temperature_c"] < 120
    probe.close()
