import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import held  # noqa: E402
from tdbg_lab.stats.held import HeldNumbers  # noqa: E402


def test_numbers_are_those_of_the_moment_and_read_together(monkeypatch):
    journeys = []
    fetched = held.fetched
    monkeypatch.setattr(held, "fetched", lambda parts: (journeys.append(len(parts)), fetched(parts))[1])
    source, loss = HeldNumbers(), torch.tensor(2.5, requires_grad=True)
    places = [source.add_numbers(loss), source.add_numbers(torch.tensor([3, 2**53 - 1]))]
    with torch.no_grad():
        loss.zero_()
    places.append(source.add_numbers(torch.tensor(0.5, dtype=torch.bfloat16)))
    assert not journeys
    numbers = source.send().read().numbers
    assert journeys == [3]
    assert places == [0, 1, 3]
    assert numbers.tolist() == [2.5, 3.0, 2.0**53 - 1, 0.5]


def test_nothing_is_sent_twice():
    source = HeldNumbers()
    assert source.send() is None
    assert source.add_numbers(torch.tensor(1.0)) == 0
    assert source.send().read().numbers.tolist() == [1.0]
    assert source.send() is None
    assert source.add_numbers(torch.tensor(2.0)) == 0


def test_what_cannot_be_read_is_lost_and_told(monkeypatch, caplog):
    source = HeldNumbers()
    source.add_numbers(torch.tensor(1.0))

    def fail(_):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(held, "fetched", fail)
    assert source.send().read().numbers.tolist() == []
    assert "could not be read" in caplog.text
