from __future__ import annotations

import pytest

from tdbg_lab.profiler.clock import ClockProbe
from tdbg_lab.profiler.probe import Reading

SECOND = 10**9


class Machine:
    """A machine whose clocks go on as a test says."""

    def __init__(self) -> None:
        self.wall, self.awake, self.boot = 1_700_000_000 * SECOND, 50 * SECOND, 80 * SECOND
        self.probe = ClockProbe(lambda: self.wall, lambda: self.awake, lambda: self.boot)

    def go_on(self, awake_s: float = 0.5, asleep_s: float = 0.0, set_s: float = 0.0) -> list[Reading]:
        self.awake += int(awake_s * SECOND)
        self.boot += int((awake_s + asleep_s) * SECOND)
        self.wall += int((awake_s + asleep_s + set_s) * SECOND)
        return list(self.probe.read())


def test_nothing_is_told_while_clocks_go_on_together() -> None:
    machine = Machine()
    assert machine.go_on() == []
    assert machine.go_on(awake_s=300, set_s=0.2) == []  # the sampler starved; the clock was trimmed


def test_sleep_is_told_once_with_its_length() -> None:
    machine = Machine()
    assert machine.go_on(asleep_s=7200) == [Reading("suspended_s", "clock", 7200.0)]
    assert machine.go_on() == []


@pytest.mark.parametrize("jump", [3600.0, -90.0])
def test_clock_that_was_set_is_told_with_its_sign(jump: float) -> None:
    machine = Machine()
    assert machine.go_on(set_s=jump) == [Reading("clock_jump_s", "clock", jump)]
    assert machine.go_on(asleep_s=10, set_s=jump) == [
        Reading("suspended_s", "clock", 10.0),
        Reading("clock_jump_s", "clock", jump),
    ]


def test_real_clocks_of_this_machine_agree() -> None:
    assert list(ClockProbe().read()) == []
