"""What is offered for a name that is not known."""

from __future__ import annotations

from tdbg_lab.nearest import did_you_mean, nearest

NAMES = ["loss/objective", "0.weight", "0.bias", "gradient/0.weight"]


def test_the_likest_names_come_first():
    assert nearest("0.wieght", NAMES) == ["0.weight"]
    assert nearest("0.wieght", NAMES, most=2) == ["0.weight", "gradient/0.weight"]


def test_a_part_of_a_name_stands_for_it_whatever_its_case():
    assert nearest("OBJ", NAMES) == ["loss/objective"]


def test_nothing_is_offered_where_nothing_is_near():
    assert nearest("", NAMES) == nearest("xyz", NAMES) == nearest("xyz", []) == []
    assert did_you_mean("xyz", NAMES) == ""


def test_the_sentence_offers_all_that_are_near():
    assert did_you_mean("weight", NAMES, most=3) == " Did you mean '0.weight' or 'gradient/0.weight'?"
