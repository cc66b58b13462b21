from __future__ import annotations

import pytest

from tdbg_lab.profiler.spans import OWN_PHASES
from tdbg_lab.views import palette


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "colour",
    [
        *(*palette.CLASSES, palette.ACCENT, palette.BAD, palette.MUTED),
        *(*palette.SEVERITY.values(), *palette.PHASES.values(), *palette.phase_colours("abcd")),
    ],
)
def test_colour_reads_on_light_and_dark(colour):
    assert _contrast(colour, "#ffffff") > 2.3
    assert _contrast(colour, "#111111") > 2.8


def test_sequential_scale_grows_lighter_all_the_way():
    levels = [_luminance(colour) for colour in palette.ramp(palette.SEQUENTIAL, 20)]
    assert levels == sorted(levels)


def test_ramp_keeps_both_ends():
    assert palette.ramp(palette.SEQUENTIAL, 5)[0] == palette.SEQUENTIAL[0]
    assert palette.ramp(palette.SEQUENTIAL, 5)[-1] == palette.SEQUENTIAL[-1]


def test_gamma_scale_starts_at_zero_and_ends_at_one():
    scale = palette.gamma(palette.SEQUENTIAL, 2.2)
    assert (scale[0][0], scale[-1][0]) == (0.0, 1.0)
    assert [position for position, _ in scale] == sorted(position for position, _ in scale)


def test_phases_of_one_training_are_told_apart_whatever_their_order():
    names = [name for name in palette.PHASES if name != "boosting"] + ["augment", "sync"]
    colours = dict(zip(names, palette.phase_colours(names), strict=True))
    assert len(set(colours.values())) == len(names)
    backwards = palette.phase_colours(names[::-1])
    assert dict(zip(names[::-1], backwards, strict=True)) == colours


def test_each_phase_that_capture_tells_of_has_a_colour():
    assert set(OWN_PHASES) <= set(palette.PHASES)
