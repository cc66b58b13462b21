import sys

import pytest

from tdbg_lab.server.turns import ShortTurns


@pytest.fixture(autouse=True)
def _interval():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_until_the_last_block_is_left():
    sys.setswitchinterval(0.005)
    turns = ShortTurns(0.001)
    with turns:
        with turns:
            assert sys.getswitchinterval() == pytest.approx(0.001, abs=5e-6)
        assert sys.getswitchinterval() == pytest.approx(0.001, abs=5e-6)
    assert sys.getswitchinterval() == pytest.approx(0.005, abs=5e-6)


def test_turns_are_as_before_after_a_failure():
    sys.setswitchinterval(0.005)
    with pytest.raises(KeyError), ShortTurns(0.001):
        raise KeyError
    assert sys.getswitchinterval() == pytest.approx(0.005, abs=5e-6)


def test_turns_that_are_shorter_already_stay():
    sys.setswitchinterval(0.0002)
    with ShortTurns(0.001):
        assert sys.getswitchinterval() == pytest.approx(0.0002, abs=5e-6)
