from __future__ import annotations

import pytest

from tdbg_lab.views.pattern import is_simple


@pytest.mark.parametrize(
    "pattern",
    [
        r"conv.*weight",
        r"layers\.\d+\.(attn|mlp)\..*weight",
        r"^(?:encoder|decoder)?\.[0-9]{1,2}\.",
        r"(?:abc)+(?!.*bias)",
        r"(?i)[+*?]{2}\+\*\?",
        r".*?\.(weight|bias)$",
    ],
)
def test_patterns_that_people_choose_layers_with_are_simple(pattern):
    assert is_simple(pattern)
