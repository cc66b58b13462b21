from __future__ import annotations

import pytest

from tdbg_lab.errors import ConfigError, NotFoundError
from tdbg_lab.views import Param, call_view, check_params, find_view, view
from tdbg_lab.views.registry import Registry, View


def test_find_view_offers_near_names_when_there_is_none():
    with pytest.raises(NotFoundError, match="Did you mean 'histogram'"):
        find_view("histgram")


def test_call_view_names_an_unknown_parameter_and_a_near_one(plain):
    with pytest.raises(ConfigError, match=r"no parameter 'tensr'.*'tensor'"):
        call_view(plain, "histogram", {"tensr": "x"})


@pytest.mark.parametrize(
    ("view_name", "params", "message"),
    [
        ("histogram", {"tensor": "layer0.weigth"}, r"no tensor 'layer0.weigth'.*'layer0.weight'"),
        ("histogram", {"tensor": 7}, "must be a text"),
        ("histogram", {"scale": "log"}, "must be one of signed_log, linear"),
        ("histogram", {"n_out": 3}, "whole number from 4 to 2000"),
        ("histogram", {"n_out": 10**9}, "whole number from 4 to 2000"),
        ("histogram", {"n_out": float("nan")}, "whole number"),
        ("histogram", {"n_out": True}, "whole number"),
        ("histogram", {"quantiles": "yes"}, "true or false"),
        ("histogram", {"steps": [5, 1]}, "first <= last"),
        ("histogram", {"steps": [1]}, "pair"),
        ("histogram", {"step": -1}, "a step"),
        ("histogram", {"step": 1.5}, "a step"),
        ("slices", {"at": "0,1"}, "a list of steps"),
        ("statistics", {"regex": "("}, "not a regular expression"),
        ("statistics", {"regex": "(a+)+$"}, "simple pattern"),
        ("statistics", {"regex": "(a|aa)+$"}, "simple pattern"),
        ("statistics", {"regex": "a" * 300}, "simple pattern"),
        ("statistics", {"regex": r"((\w+))+!"}, "simple pattern"),
        ("statistics", {"regex": r"(?:\w\w?)+!"}, "simple pattern"),
        ("statistics", {"regex": r"\w*" * 60 + "!"}, "at most 4 repeats, none within another"),
        ("statistics", {"regex": r"\w?" * 60 + "!"}, "simple pattern"),
        ("statistics", {"regex": r"(?#[)" + r"\w*" * 40 + "!(?#])"}, "simple pattern"),
        ("statistics", {"regex": "a{99999999999}"}, "not a regular expression"),
        ("statistics", {"tensors": ["gradient/layer0.weight"] * 2000}, "at most"),
        ("statistics", {"statistic": "L2"}, "Did you mean"),
    ],
)
def test_wrong_parameters_raise_one_clear_sentence(plain, view_name, params, message):
    with pytest.raises(ConfigError, match=message) as caught:
        call_view(plain, view_name, params)
    assert str(caught.value).count("\n") == 0
    assert len(str(caught.value)) < 500


def test_check_params_fills_in_defaults_and_types(plain):
    found = check_params(plain, "histogram", {"step": 3.0, "steps": [None, 5], "tensor": "layer0.weight"})
    assert found["step"] == 3
    assert isinstance(found["step"], int)
    assert found["steps"] == (None, 5)
    assert found["scale"] == "signed_log"


def test_unknown_tensor_is_accepted_while_the_run_is_empty(nothing):
    assert call_view(nothing, "histogram", {"tensor": "comes/later"}).layout.annotations


def test_view_guesses_parameters_from_the_signature():
    @view("test_guess")
    def guess(run, *, tensor=None, step=None, bins: int = 5, flip: bool = False):
        """Guessed."""

    kinds = {param.name: (param.kind, param.default) for param in find_view("test_guess").params}
    assert kinds == {
        "tensor": ("tensor", None),
        "step": ("step", None),
        "bins": ("int", 5),
        "flip": ("bool", False),
    }


def test_view_refuses_parameters_the_function_does_not_take():
    with pytest.raises(ConfigError, match="takes no such argument"):

        @view("test_mismatch", params=[Param("other", "Other", "int")])
        def mismatch(run):
            """Wrong."""


def test_view_refuses_a_name_that_is_taken_but_replaces_itself():
    registry = Registry()
    registry.add(View("a", "A", "", print, origin="package.one"))
    registry.add(View("a", "B", "", print, origin="package.one"))
    assert registry.find("a").title == "B"
    with pytest.raises(ConfigError, match="already a view 'a'"):
        registry.add(View("a", "C", "", print, origin="package.two"))


def test_view_of_a_notebook_cell_may_rename_its_function_but_not_take_a_package_view():
    registry = Registry()
    registry.add(View("a", "A", "", print, origin="__main__.one"))
    registry.add(View("a", "B", "", print, origin="__main__.two"))
    assert registry.find("a").title == "B"
    registry.add(View("b", "B", "", print, origin="package.one"))
    with pytest.raises(ConfigError):
        registry.add(View("b", "C", "", print, origin="__main__.two"))


@pytest.mark.parametrize("name", ["Upper", "", "a-b", "9a", "a" * 70, "../x"])
def test_view_refuses_a_name_that_is_no_identifier(name):
    with pytest.raises(ConfigError, match="lower case"):
        view(name)


def test_call_view_says_so_when_a_view_returns_no_figure(plain):
    @view("test_no_figure")
    def no_figure(run):
        """Forgets to return."""

    with pytest.raises(ConfigError, match="must return a plotly Figure, not NoneType"):
        call_view(plain, "test_no_figure")


def test_view_dictionaries_are_plain_json():
    import json

    from tdbg_lab.views import list_views

    for each in list_views():
        assert json.loads(json.dumps(each.as_dict()))["name"] == each.name


def test_entry_points_register_views(tmp_path, monkeypatch):
    package = tmp_path / "somebodys_views.py"
    package.write_text(
        "from tdbg_lab.views import view\n@view('test_from_package')\ndef draw(run):\n    '''Theirs.'''\n"
    )
    info = tmp_path / "somebodys_views-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-views\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text(
        "[tdbg_lab.views]\nmine = somebodys_views\nbroken = not_there\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry()
    registry._load_entry_points()
    assert find_view("test_from_package").description == "Theirs."
