"""SaveConfig, ReductionConfig, Collection: what they say, and that JSON brings them back."""

from __future__ import annotations

import pytest

from tdbg_lab.smdebug import ReductionConfig, SaveConfig, SaveConfigMode, modes
from tdbg_lab.smdebug.core.collection import Collection
from tdbg_lab.smdebug.core.collection_manager import CollectionManager
from tdbg_lab.smdebug.core.modes import str_to_mode_keys
from tdbg_lab.smdebug.core.reductions import get_reduction_tensor_name, reverse_reduction_tensor_name
from tdbg_lab.smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError


def saved(config, mode=modes.TRAIN):
    return [step for step in range(20) if config.should_save_step(mode, step)]


def test_save_config_saves_every_500_steps_by_default():
    assert SaveConfig().get_save_config(modes.EVAL).save_interval == 500


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"save_interval": 5, "start_step": 2, "end_step": 15, "save_steps": [1, 3]}, [1, 3, 5, 10]),
        ({"save_steps": [1, 3]}, [0, 1, 3]),
        ({"save_interval": 5, "start_step": 7}, [10, 15]),
        ({"save_interval": 10, "end_step": 10}, [0]),
    ],
)
def test_save_config_saves_listed_steps_and_multiples_before_the_end(arguments, steps):
    assert saved(SaveConfig(**arguments)) == steps


def test_save_config_holds_one_for_each_mode():
    config = SaveConfig({modes.TRAIN: SaveConfigMode(save_interval=2)})
    assert config.mode_save_configs[modes.EVAL] is None
    config.merge_default_save_config(SaveConfig(save_interval=7))
    assert saved(config, modes.EVAL) == [0, 7, 14]
    assert saved(config) == list(range(0, 20, 2))


def test_save_config_comes_back_from_json():
    config = SaveConfig(save_interval=5, save_steps=[2], end_step=9)
    assert SaveConfig.from_json(config.to_json()) == config
    assert saved(SaveConfig.from_json('{"save_interval": "6"}')) == [0, 6, 12, 18]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: SaveConfig(save_steps=3), "save_steps is 3; expected a list of step numbers."),
        (lambda: SaveConfig(save_interval=0), "save_interval is 0; expected at least 1."),
        (lambda: SaveConfig(save_interval="often"), "save_interval is 'often'; expected a whole number."),
        (lambda: SaveConfig({"TRAIN": SaveConfigMode()}), "maps modes to SaveConfigMode objects"),
        (lambda: SaveConfig.from_dict({"every": 3}), "'every' is not part of a SaveConfig"),
        (lambda: SaveConfigMode.from_dict({"every": 3}), "'every' is not part of a SaveConfigMode"),
        (
            lambda: ReductionConfig(reductions=["median"]),
            "'median' is none of the reductions: choose from min",
        ),
        (lambda: ReductionConfig(norms=["l3"]), "'l3' is none of the norms: choose from l1, l2."),
        (lambda: ReductionConfig(save_raw_tensor="yes"), "save_raw_tensor is 'yes'; expected True or False."),
        (lambda: Collection.from_dict({"name": "a", "foo": 1}), "'foo' is not part of a collection"),
        (lambda: Collection("a", include_regex="("), "is not a regular expression"),
        (lambda: Collection.from_dict({}), "A collection has no name: found {}."),
        (lambda: Collection.from_dict(3), "3 cannot become a collection; expected a dict of its fields."),
        (
            lambda: Collection.from_dict({"name": "a", "reduction_config": 3}),
            "3 cannot become a ReductionConfig",
        ),
        (lambda: Collection.from_dict({"name": "a", "save_config": 3}), "3 cannot become a SaveConfig;"),
        (lambda: SaveConfig(3), "3 cannot become a SaveConfig;"),
        (lambda: SaveConfig.from_dict({"TRAIN": 3}), "3 cannot become a SaveConfigMode;"),
        (lambda: ReductionConfig(reductions=3), "reductions is 3; expected a list of min, max"),
        (lambda: ReductionConfig.from_dict({"reductions": 3}), "reductions is 3; expected names"),
        (lambda: CollectionManager.load_from_string('{"foo": 1}'), "holds no collections"),
        (lambda: str_to_mode_keys("warm"), "Invalid mode 'warm': choose from TRAIN"),
        (lambda: reverse_reduction_tensor_name("conv"), "'conv' is not the name of a reduction."),
    ],
)
def test_wrong_value_is_told_in_one_sentence(wrong, sentence):
    with pytest.raises(SMDebugValueError) as raised:
        wrong()
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SaveConfig.parse(3),
        lambda: Collection("a", save_config=3),
        lambda: Collection("a", reduction_config=3),
        lambda: Collection("a").include(3),
        lambda: Collection("a", include_regex=3),
        lambda: Collection("a", tensor_names=3),
        lambda: Collection("a", tensor_names="conv"),
        lambda: CollectionManager().add(3),
    ],
)
def test_wrong_type_is_told(wrong):
    with pytest.raises(SMDebugTypeError):
        wrong()


def test_reduction_config_comes_back_from_json():
    config = ReductionConfig(
        reductions=["min", "mean"], norms=["l1"], abs_reductions=["max"], abs_norms=["l2"], save_shape=True
    )
    assert ReductionConfig.from_json(config.to_json()) == config
    assert config.to_json_dict()["reductions"] == "min,mean,l1_norm,abs_max,abs_l2_norm"
    assert ReductionConfig.from_dict({"reductions": "abs_mean", "save_raw_tensor": "true"}).save_raw_tensor
    assert ReductionConfig.from_dict(None) is None


def test_collection_comes_back_from_json():
    collection = Collection(
        "a",
        include_regex=["relu"],
        tensor_names=["x", "y"],
        reduction_config=ReductionConfig(reductions=["min"]),
        save_config={modes.TRAIN: SaveConfigMode(save_interval=3)},
    )
    assert Collection.from_json(collection.to_json()) == collection
    assert collection.tensor_names == {"x", "y"}
    assert Collection.from_dict({"name": "a", "include_regex": "x,y"}).include_regex == ["x", "y"]


def test_collection_manager_makes_what_is_asked_for():
    manager = CollectionManager()
    assert manager.get("new") is manager.get("new", create=False)
    with pytest.raises(SMDebugError, match="There is no collection 'other'"):
        manager.get("other", create=False)
    assert CollectionManager.load_from_string('{"collections": {"a": {"name": "a"}}}').get("a").name == "a"


@pytest.mark.parametrize(("reduction", "absolute"), [("mean", True), ("l1", False)])
def test_reduction_name_comes_back(reduction, absolute):
    name = get_reduction_tensor_name("conv/w:0", reduction, absolute)
    assert reverse_reduction_tensor_name(name) == ("conv/w", reduction, absolute)
