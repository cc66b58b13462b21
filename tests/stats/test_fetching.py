import pytest

torch = pytest.importorskip("torch")

from tdbg_lab.stats import fetching  # noqa: E402
from tdbg_lab.stats.layouts import Part  # noqa: E402


def test_parts_arrive_in_their_order_and_form(monkeypatch):
    monkeypatch.setattr(fetching, "_MOST", 10)
    shapes = [(3, 2), (0,), (2, 2), (20,), (), (4,)]
    given = [Part(torch.randn(shape), axis) for axis, shape in enumerate(shapes)]
    given += [Part(torch.arange(6).view(2, 3), 0), Part(torch.randn(2, 3).bfloat16().t(), 1, zeros=5)]
    found = fetching.fetched(given)
    assert len(found) == len(given)
    for mine, other in zip(found, given, strict=True):
        assert (mine.axis, mine.zeros) == (other.axis, other.zeros)
        assert mine.values.dtype is other.values.dtype
        assert torch.equal(mine.values, other.values)


def test_small_parts_travel_together(monkeypatch):
    journeys = []
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: (journeys.append(self.numel()), self)[1])
    fetching.fetched([Part(torch.ones(n), None) for n in (2, 3, 4)])
    assert journeys == [9]
