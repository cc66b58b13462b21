"""Functions that are listened to, and given back."""

from __future__ import annotations

import functools
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tdbg_lab.listening import forget, listen


class Library:
    def work(self, value):
        return 2 * value

    @staticmethod
    def help(value):
        return value


class Part(Library):
    pass


class Listener:
    def __init__(self):
        self.heard = []


def told(original, listeners):
    @functools.wraps(original)
    def tell(*args):
        for one in listeners:
            one.heard.append(args[1:])
        return original(*args)

    return tell


@pytest.mark.parametrize("owner", [Library, Part], ids=["its own", "inherited"])
def test_all_are_told_and_the_last_one_gives_the_function_back(owner):
    before = dict(vars(owner))
    first, second = Listener(), Listener()
    assert listen(owner, "work", first, told)
    assert listen(owner, "work", second, told)
    assert owner().work(3) == 6
    forget(owner, "work", first)
    assert owner().work(4) == 8
    forget(owner, "work", second)
    assert dict(vars(owner)) == before
    assert owner().work(5) == 10
    assert (first.heard, second.heard) == ([(3,)], [(3,), (4,)])


def test_listener_that_is_gone_gives_the_function_back():
    before, listener = Library.work, Listener()
    listen(Library, "work", listener, told)
    assert Library.work is not before
    del listener
    gc.collect()
    assert Library.work is before


def test_what_others_put_around_ours_stays(monkeypatch):
    listener = Listener()
    listen(Library, "work", listener, told)
    ours = Library.work

    @functools.wraps(ours)
    def theirs(self, value):
        return ours(self, value) + 1

    monkeypatch.setattr(Library, "work", theirs)
    assert Library().work(1) == 3
    forget(Library, "work", listener)
    assert Library.work is theirs
    assert Library().work(1) == 3
    assert listener.heard == [(1,)]
    monkeypatch.undo()
    Library.work = ours.__wrapped__


def test_who_did_not_listen_can_forget():
    forget(Library, "work", Listener())
    forget(Library, "missing", Listener())


@pytest.mark.parametrize("name", ["missing", "help", "__doc__"])
def test_only_functions_and_methods_can_be_listened_to(name):
    before = dict(vars(Library))
    assert not listen(Library, name, Listener(), told)
    assert dict(vars(Library)) == before


def test_threads_that_come_and_go_at_once_are_all_told():
    """As trainings in threads do, each around its own evaluations."""
    original, missed = Library.work, []

    def come_and_go():
        one = Listener()
        for _ in range(5000):
            one.heard.clear()
            listen(Library, "work", one, told)
            Library().work(1)
            forget(Library, "work", one)
            if not one.heard:
                missed.append(one)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(come_and_go) for _ in range(4)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    assert not missed
    assert Library.work is original
