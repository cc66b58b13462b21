from __future__ import annotations

from types import SimpleNamespace

import pytest

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.notebook.names import current_run_path, tensor_named, variable, view_named

KNOWN = [
    "conv1.weight",
    "conv1.bias",
    "gradient/conv1.weight",
    "activation/conv1",
    "loss/CrossEntropyLoss",
    "latent",
]


def test_variable_finds_a_name_and_follows_attributes():
    trainer = SimpleNamespace(model=SimpleNamespace(head=3))
    assert variable("trainer.model.head", {"trainer": trainer}) == 3


def test_variable_offers_the_nearest_name_when_it_is_wrong():
    with pytest.raises(NotFoundError, match=r"^There is no variable 'modl'\. Did you mean 'model'\?$"):
        variable("modl", {"model": 1, "optimizer": 2})


def test_variable_offers_the_nearest_attribute_when_it_is_wrong():
    with pytest.raises(NotFoundError, match=r"'trainer' has no attribute 'modle'\. Did you mean 'model'\?"):
        variable("trainer.modle", {"trainer": SimpleNamespace(model=1)})


def test_variable_does_not_evaluate_expressions():
    with pytest.raises(NotFoundError):
        variable("__import__('os').getcwd()", {})


@pytest.mark.parametrize(
    ("word", "view"),
    [("histograms", "histogram"), ("losses", "scalars"), ("latent", "latent"), ("system", "timeline")],
)
def test_view_named_understands_everyday_words(word, view):
    assert view_named(word, ["histogram", "scalars", "latent", "timeline"]) == view


def test_view_named_offers_the_nearest_when_it_is_wrong():
    with pytest.raises(NotFoundError, match="Did you mean 'histogram"):
        view_named("histogrm", ["histogram", "scalars"])


@pytest.mark.parametrize(
    ("word", "tensor"),
    [
        ("conv1", "activation/conv1"),
        ("conv1.weight", "conv1.weight"),
        ("CrossEntropyLoss", "loss/CrossEntropyLoss"),
        ("latent", "latent"),
        ("conv9", None),
    ],
)
def test_tensor_named_takes_a_module_for_its_output(word, tensor):
    assert tensor_named(word, KNOWN) == tensor


def test_tensor_named_prefers_the_kinds_that_the_view_asks_for():
    assert tensor_named("conv1", KNOWN, preferred=["gradient/conv1.weight"]) == "gradient/conv1.weight"


def test_current_run_path_says_what_to_do_when_there_is_no_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="attach first"):
        current_run_path(None)


def test_run_at_an_address_is_left_as_it_is():
    assert current_run_path("s3://bucket/runs/first") == "s3://bucket/runs/first"
