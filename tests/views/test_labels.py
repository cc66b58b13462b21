from __future__ import annotations

import pytest

from tdbg_lab.views.labels import count, duration, number, percent, safe, short, short_unique


def test_safe_takes_the_meaning_out_of_html_and_templates():
    assert safe("<b>%{x}</b>&") == "&lt;b&gt;%\u200c{x}&lt;/b&gt;&amp;"
    assert "\u202e" not in safe("a\u202eb")
    assert "\x00" not in safe("a\x00b")


def test_short_keeps_both_ends():
    name = "encoder.layers.11.attention.self.query.weight"
    assert short(name, 20).endswith("query.weight")
    assert short(name, 20).startswith("encod")
    assert len(short(name, 20)) == 20


def test_short_unique_keeps_names_apart_and_drops_what_all_share():
    names = [f"gradient/{'x' * 50}{i}{'y' * 50}" for i in range(3)]
    assert len(set(short_unique(names))) == 3
    assert short_unique(["gradient/a", "gradient/b"]) == ["a", "b"]
    assert short_unique(["gradient/a", "b"]) == ["gradient/a", "b"]


def test_short_unique_drops_the_modules_around_where_names_are_long():
    inner = ["encoder.layer.0.attention.self.query.weight", "encoder.layer.1.output.dense.weight", "pooler.w"]
    names = [f"gradient/0.model.{one}" for one in inner]
    assert short_unique(names, 50) == inner
    assert short_unique([names[0], names[0].replace("weight", "bias")], 20) == ["query.weight", "query.bias"]
    assert short_unique([names[0]], 20) == ["query.weight"]
    assert short_unique(["a.b.weight", "a.c.weight"]) == ["a.b.weight", "a.c.weight"]
    assert len(set(short_unique(["x" * 40, "x" * 39 + "y"], 20))) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.5, "\u22120.5"), (1e-7, "1e\u22127"), (123456.0, "123,500"), (1.5e9, "1.5e9"),
     (float("nan"), "NaN"), (float("inf"), "+inf"), (float("-inf"), "\u2212inf")],
)  # fmt: skip
def test_number_is_short_and_readable(value, text):
    assert number(value) == text


def test_count_and_percent_agree_with_the_number():
    assert count(1, "step") == "1 step"
    assert count(12000, "class", "classes") == "12,000 classes"
    assert percent(1e-6) == "<0.1%"
    assert percent(0.99999) == ">99.9%"
    assert percent(1.0) == "100.0%"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 us"),
        (3.2e-4, "320 us"),
        (0.0451, "45.1 ms"),
        (1.2, "1.2 s"),
        (119, "119 s"),
        (9000, "2.5 h"),
    ],
)
def test_duration_has_its_own_unit(seconds, text):
    assert duration(seconds) == text
