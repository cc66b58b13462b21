"""The public names: all there, and loaded only when used."""

from __future__ import annotations

import pytest

import tdbg_lab
from tdbg_lab.errors import MissingDependencyError


def there(name: str) -> bool:
    try:
        return getattr(tdbg_lab, name, None) is not None
    except MissingDependencyError as error:  # an adapter whose library is not installed says so
        return "pip install" in str(error)


def test_every_public_name_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")  # TensorFlow and Triton cannot both be in one process
    assert [name for name in tdbg_lab.__all__ if not there(name)] == []


def test_dir_lists_the_public_names() -> None:
    assert set(tdbg_lab.__all__) <= set(dir(tdbg_lab))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'atach'"):
        _ = tdbg_lab.atach
