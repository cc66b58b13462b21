"""Telling a process again by its mark."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from tdbg_lab.store.process import ProcessMark


def set_clock(monkeypatch, by_s: float) -> None:
    """As `psutil` sees it after the clock was set: the kernel's time of boot moves with it."""
    booted_s = psutil.boot_time()
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: booted_s + by_s)


def test_process_is_found_by_its_mark():
    found = ProcessMark.own().find()
    assert found is not None
    assert found.pid == os.getpid()


@pytest.mark.parametrize("by_s", [3600.0, -3600.0, 2.0])
def test_process_is_found_after_the_clock_was_set(monkeypatch, by_s):
    mark = ProcessMark.own()
    set_clock(monkeypatch, by_s)
    assert mark.find() is not None


def test_mark_without_the_time_since_boot_is_good_as_long_as_the_clock_is(monkeypatch):
    mark = replace(ProcessMark.own(), since_boot_s=0.0)
    assert mark.find() is not None
    set_clock(monkeypatch, 3600.0)
    assert mark.find() is None


def test_number_of_a_process_that_was_given_to_another_is_not_taken_for_it():
    mark = ProcessMark.own()
    later = replace(mark, created_s=mark.created_s - 10.0, since_boot_s=mark.since_boot_s - 10.0)
    assert later.find() is None


def test_number_alone_is_believed():
    assert ProcessMark(os.getpid()).find() is not None


@pytest.mark.parametrize("pid", [-1, 2**31, 2**70])
def test_number_that_no_process_has_is_no_trouble(pid):
    assert ProcessMark(pid, 1.0, 1.0).find() is None


def test_process_that_was_killed_is_gone_before_it_is_reaped():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = ProcessMark(child.pid)
    assert mark.find() is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert mark.find() is None
    child.communicate()
