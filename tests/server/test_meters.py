"""The meters of the machine: the real one where it can be, NVML on a fake."""

from __future__ import annotations

import asyncio
import threading
import time

import psutil
import pytest

from tdbg_lab.profiler.gpu import GpuProbe
from tdbg_lab.server.machine import Machine
from tdbg_lab.server.meters import Meters
from tdbg_lab.server.wire import GpuJson, HostMessage
from tests.profiler.nvml import FakeNvml


class Counted(Machine):
    """Notes in which thread it was read, and whether it was closed."""

    def __init__(self, nvml: FakeNvml | None = None) -> None:
        super().__init__(lambda: GpuProbe.find(nvml) if nvml else (None, ""))
        self.threads: list[str] = []
        self.closed = threading.Event()

    def read(self) -> HostMessage:
        self.threads.append(threading.current_thread().name)
        return super().read()

    def close(self) -> None:
        super().close()
        self.closed.set()


async def hear(heard: list[HostMessage], count: int) -> None:
    async with asyncio.timeout(30):
        while len(heard) < count:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0.005)


def test_machine_tells_what_psutil_and_nvml_tell() -> None:
    machine = Machine(lambda: GpuProbe.find(FakeNvml()))
    machine.read()
    time.sleep(0.05)
    told = machine.read()
    assert set(told) == set(HostMessage.__annotations__)
    assert told["cpu"] is not None
    assert 0 <= told["cpu"] <= 100
    assert told["cores"]
    assert 0 < told["cores"] <= (psutil.cpu_count() or 1)
    assert told["memory_used"]
    assert told["memory_total"]
    assert 0 < told["memory_used"] < told["memory_total"] <= psutil.virtual_memory().total
    assert told["net_recv"] is not None
    assert told["net_recv"] >= 0
    first, second = told["gpus"]
    assert first == {
        "device": "gpu0",
        "name": "Fake A100",
        "percent": 73,
        "memory_used": 20 * 2**30,
        "memory_total": 80 * 2**30,
        "temperature_c": 61,
        "power_w": 250.5,
        "answers": True,
    }
    assert set(first) == set(GpuJson.__annotations__)
    assert second["power_w"] is None, "what a device does not support is null"


def test_lost_gpu_keeps_its_place_without_values() -> None:
    nvml = FakeNvml(count=1)
    machine = Machine(lambda: GpuProbe.find(nvml))
    machine.read()
    nvml.lost = True
    (lost,) = machine.read()["gpus"]
    assert (lost["device"], lost["percent"], lost["memory_used"]) == ("gpu0", None, None)
    nvml.lost = False
    assert machine.read()["gpus"][0]["percent"] == 73
    machine.close()
    assert nvml.open == 0


@pytest.mark.parametrize("nvml", [FakeNvml(driver=False), FakeNvml(count=0)], ids=["no driver", "no device"])
def test_machine_without_gpu_says_so(nvml: FakeNvml) -> None:
    told = Machine(lambda: GpuProbe.find(nvml)).read()
    assert told["gpus"] == []
    assert told["gpu_problem"] in {
        "No NVIDIA driver was found: no GPU is read.",
        "The NVIDIA driver knows no GPU.",
    }


def test_driver_that_fails_in_its_own_way_takes_only_the_gpus_away() -> None:
    nvml = FakeNvml(count=1)
    machine = Machine(lambda: GpuProbe.find(nvml))
    machine.read()

    def broken(_handle: str) -> None:
        raise OSError("the library is gone")

    nvml.nvmlDeviceGetUtilizationRates = broken  # type: ignore[assignment,method-assign]
    told = machine.read()
    assert told["gpus"][0]["percent"] is None
    assert told["memory_used"]
    machine.close()

    def gone() -> tuple[GpuProbe | None, str]:
        raise OSError("the library is gone")

    told = Machine(gone).read()
    assert (told["gpus"], told["gpu_problem"]) == ([], "The GPUs of this machine cannot be read.")


def test_gpu_that_hangs_is_marked_and_the_meters_go_on() -> None:
    nvml = FakeNvml()
    machine = Machine(lambda: GpuProbe.find(nvml, limit_s=0.2))
    assert [gpu["answers"] for gpu in machine.read()["gpus"]] == [True, True]
    nvml.hung = {"handle1"}
    told = machine.read()
    assert [(gpu["percent"], gpu["answers"]) for gpu in told["gpus"]] == [(73, True), (None, False)]
    assert told["memory_used"]
    machine.close()
    nvml.go_on.set()


async def test_machine_is_read_once_for_two_and_not_for_none() -> None:
    machine = Counted(FakeNvml())
    meters = Meters(machine, interval_s=0.02, linger_s=0.05)
    one: list[HostMessage] = []
    two: list[HostMessage] = []
    first = meters.subscribe(one.append)
    await hear(one, 1)
    second = meters.subscribe(two.append)
    assert two[0] is one[-1], "the second one need not wait"
    await hear(two, 5)
    assert all(message in one for message in two)
    assert len(machine.threads) <= len(one) + 2, "read once, whoever listens"
    assert all(name.startswith("tdbg-meters") for name in machine.threads), "never on the loop"
    first()
    first()
    before = len(two)
    await hear(two, before + 2)
    second()
    async with asyncio.timeout(30):
        while meters.running or not machine.closed.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    reads = len(machine.threads)
    await asyncio.sleep(0.1)
    assert len(machine.threads) == reads, "nobody looks, nothing is read"

    again: list[HostMessage] = []
    meters.subscribe(again.append)
    assert again == [], "what was read before the pause is not told as new"
    await hear(again, 1)
    await meters.aclose()
    await meters.aclose()
    assert not meters.running


async def test_reading_goes_on_when_somebody_comes_back_in_time() -> None:
    machine = Counted()
    meters = Meters(machine, interval_s=0.02, linger_s=30)
    heard: list[HostMessage] = []
    leave = meters.subscribe(heard.append)
    await hear(heard, 1)
    leave()
    assert meters.running
    meters.subscribe(heard.append)
    await hear(heard, 4)
    assert not machine.closed.is_set()
    await meters.aclose()


async def test_slow_driver_does_not_hold_the_loop() -> None:
    started, go_on = threading.Event(), threading.Event()

    class Slow(Machine):
        def read(self) -> HostMessage:
            started.set()
            go_on.wait(30)
            return super().read()

    meters = Meters(Slow(lambda: (None, "")), interval_s=0.02)
    meters.subscribe(lambda _: None)
    async with asyncio.timeout(10):
        while not started.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await meters.aclose()
    assert not go_on.is_set(), "closing did not wait for the driver"
    go_on.set()


async def test_two_clients_are_told_of_the_machine_until_they_look_away(tdbg_socket, jp_serverapp) -> None:
    meters = jp_serverapp.web_app.settings["tdbg_services"].meters
    async with tdbg_socket() as one, tdbg_socket() as two:
        await one.send(type="ping")
        await one.until(lambda message: message["type"] == "pong")
        assert not meters.running, "nobody has asked"
        for client in (one, two):
            await client.send(type="host", on=True)
            await client.send(type="host", on=True)
        first = await one.until(lambda message: message["type"] == "host")
        assert set(first) == set(HostMessage.__annotations__)
        assert 0 <= first["cpu"] <= 100
        assert 0 < first["memory_used"] < first["memory_total"]
        later = await two.until(lambda message: message["type"] == "host" and message != first)
        assert later == await one.until(lambda message: message.get("time_ns") == later["time_ns"])
        await one.send(type="host", on=False)
        await one.send(type="ping")
        await one.until(lambda message: message["type"] == "pong")
        assert len(meters._listeners) == 1
    async with asyncio.timeout(30):
        while meters._listeners:  # noqa: ASYNC110 - a closed socket is heard of a little later
            await asyncio.sleep(0.01)


async def test_slow_client_keeps_only_the_latest_of_the_machine(jp_serverapp) -> None:
    from tdbg_lab.server.subscriber import Subscriber

    services = jp_serverapp.web_app.settings["tdbg_services"]
    meters = Meters(Counted(), interval_s=0.01)
    client = Subscriber(services.catalog, services.tails, services.summaries, meters)
    heard: list[HostMessage] = []
    meters.subscribe(heard.append)
    client.look(on=True)
    await hear(heard, 3)
    assert len(client.outbox) == 1
    assert await client.outbox.get() is heard[-1]
    client.close()
    client.look(on=True)
    assert len(client.outbox) == 0
    await meters.aclose()
