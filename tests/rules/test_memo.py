from __future__ import annotations

from tdbg_lab.records import Kind, TensorKey
from tdbg_lab.rules.layout import Layout
from tdbg_lab.rules.memo import remembered


def layout(*names: str) -> Layout:
    return Layout(tuple(TensorKey(name, Kind.WEIGHT, shape=(2, 3)) for name in names))


def test_remembered_works_out_once_for_each_owner_and_arguments() -> None:
    asked: list[tuple[Layout, str]] = []

    @remembered
    def longer(of: Layout, than: str) -> list[str]:
        asked.append((of, than))
        return [key.name for key in of.keys if len(key.name) > len(than)]

    one, other = layout("a", "bcd"), layout("efg")
    assert longer(one, "x") == longer(one, "x") == ["bcd"]
    assert longer(one, "xyz") == []
    assert longer(other, "x") == ["efg"]
    assert asked == [(one, "x"), (one, "xyz"), (other, "x")]


def test_remembered_method_keeps_results_of_two_functions_apart() -> None:
    @remembered
    def names(of: Layout) -> list[str]:
        return [key.name for key in of.keys]

    one = layout("a", "b")
    assert one.matrices(Kind.WEIGHT).tolist() == [0, 1]
    assert names(one) == ["a", "b"]
    assert one.matrices(Kind.WEIGHT) is one.matrices(Kind.WEIGHT)
    assert one.matrices(Kind.GRADIENT).tolist() == []
