"""Activation functions are known by name, however a framework writes it."""

from __future__ import annotations

import pytest

from tdbg_lab.capture.activations import has_units, named_after_one


@pytest.mark.parametrize("name", ["leaky_relu", "LeakyReLU", "gelu", "hard_silu", "Hardtanh", "SELU"])
def test_function_with_units_is_known_however_it_is_written(name):
    assert has_units(name)
    assert named_after_one(name)


@pytest.mark.parametrize("name", ["relu", "ReLU6", "tanh", "sigmoid", "softmax", "linear", "Dense"])
def test_others_have_marks_of_their_own_or_none(name):
    assert not has_units(name)
    assert not named_after_one(name) or "relu" in name.lower()  # "elu" is in it: it has to be asked first


def test_class_of_a_library_is_known_by_the_function_in_its_name():
    assert named_after_one("NewGELUActivation")
    assert not has_units("NewGELUActivation")
