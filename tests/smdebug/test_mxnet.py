"""MXNet is retired; its import says so."""

from __future__ import annotations

import importlib

import pytest

from tdbg_lab.errors import MissingDependencyError


def test_import_of_the_mxnet_hook_says_what_still_works():
    with pytest.raises(MissingDependencyError, match=r"MXNet is retired.*create_trial\(path\)"):
        importlib.import_module("tdbg_lab.smdebug.mxnet")
