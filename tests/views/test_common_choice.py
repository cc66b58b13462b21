"""What a view shows that is asked for no tensor."""

from __future__ import annotations

from types import SimpleNamespace

from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.views.common import chosen_tensor


def run_of(*keys):
    return SimpleNamespace(tensors=lambda mode=None: list(keys))


def test_what_has_many_elements_goes_before_numbers():
    depth, gains = TensorKey("depth", Kind.CUSTOM), TensorKey("gains", Kind.CUSTOM, shape=(30,))
    assert chosen_tensor(run_of(depth, gains), None, mode=Mode.TRAIN) == "gains"
    assert chosen_tensor(run_of(depth), None, mode=Mode.TRAIN) == "depth"
