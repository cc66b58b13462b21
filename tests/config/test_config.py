"""Settings: what is accepted, and one clear sentence about what is not."""

from __future__ import annotations

import json
import sys

import pytest

from tdbg_lab.config import CaptureConfig, CollectionConfig, SaveSchedule, load_config
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Kind, Mode


def names(config):
    return [one.name for one in config.collections]


def test_defaults_capture_the_usual_and_no_inputs():
    config = CaptureConfig.build()
    assert config.save_every == 10
    assert names(config) == [
        "weights",
        "biases",
        "gradients",
        "activations",
        "losses",
        "optimizer",
        "scalars",
        "custom",
    ]


def test_list_of_collections_is_the_whole_list():
    config = CaptureConfig.build(collections=["weights", {"name": "mine", "include": "relu"}])
    assert names(config) == ["weights", "mine"]
    assert config.collections[1].include == ("relu",)
    assert names(CaptureConfig.build(collections=["default", "inputs"]))[-2:] == ["custom", "inputs"]


def test_mapping_of_collections_changes_the_defaults():
    config = CaptureConfig.build(
        collections={"gradients": False, "inputs": True, "activations": {"save": 2}, "mine": {"include": "x"}}
    )
    assert "gradients" not in names(config)
    assert names(config)[-2:] == ["inputs", "mine"]
    activations = next(one for one in config.collections if one.name == "activations")
    assert activations.kinds == ("activation",)
    assert activations.schedule(Mode.TRAIN, 10) == SaveSchedule(every=2)


@pytest.mark.parametrize(
    ("schedule", "saved"),
    [
        (SaveSchedule(every=3), [0, 3, 6, 9]),
        (SaveSchedule(every=3, start=2, end=8), [2, 5]),
        (SaveSchedule(steps=(1, 4)), [1, 4]),
        (SaveSchedule(every=5, steps=(1,)), [0, 1, 5]),
        (SaveSchedule(off=True), []),
    ],
)
def test_schedule_saves_the_steps_it_names(schedule, saved):
    resolved = schedule.resolved(10)
    assert [step for step in range(10) if resolved.saves(step)] == saved


@pytest.mark.parametrize("every", [None, 1, 2, 5])
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("end", [None, 2, 11])
@pytest.mark.parametrize("steps", [(), (0, 4, 5, 17)])
@pytest.mark.parametrize("off", [False, True])
def test_schedule_answers_the_same_until_the_step_it_names(every, start, end, steps, off):
    schedule = SaveSchedule(every=every, start=start, end=end, steps=steps, off=off)
    for step in range(20):
        until = schedule.until(step)
        assert until > step
        assert {schedule.saves(one) for one in range(step, min(until, 30))} == {schedule.saves(step)}
    assert SaveSchedule(every=1).until(7) == SaveSchedule(off=True).until(7) == sys.maxsize
    assert SaveSchedule(every=10).until(3) == 10


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_file_that_an_editor_of_windows_wrote_is_read(tmp_path, ending):
    path = tmp_path / f"capture.{ending}"
    path.write_text(json.dumps({"save_every": 4}), encoding="utf-8-sig")
    assert CaptureConfig.build(path).save_every == 4


def test_open_distance_is_that_of_the_configuration():
    collection = CollectionConfig(name="x", save={"start": 4}, modes={"eval": 7, "predict": False})
    assert collection.schedule(Mode.TRAIN, 3) == SaveSchedule(every=3, start=4)
    assert collection.schedule(Mode.EVAL, 3).every == 7
    assert collection.schedule(Mode.PREDICT, 3).off


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_files_are_read(tmp_path, ending):
    path = tmp_path / f"capture.{ending}"
    text = {"save_every": 4, "collections": {"inputs": True}}
    path.write_text(json.dumps(text) if ending == "json" else "save_every: 4\ncollections:\n  inputs: true\n")
    for given in (path, str(path), text, CaptureConfig.build(text)):
        config = CaptureConfig.build(given)
        assert config.save_every == 4
        assert "inputs" in names(config)
    assert CaptureConfig.build(path, save_every=2).save_every == 2


def test_what_is_dumped_builds_the_same_configuration():
    config = CaptureConfig.build(
        save_every=7,
        collections=[{"name": "a", "include": ["x"], "modes": {"eval": False}, "kinds": [Kind.WEIGHT]}],
    )
    data = json.loads(json.dumps(config.dump()))
    assert CaptureConfig.build(data) == config


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"save_evry": 3},
            "save_evry is not a setting; expected one of .* \\(did you mean 'save_every'\\?\\)",
        ),
        ({"save_every": "3"}, "save_every is '3' \\(str\\); expected a whole number of steps"),
        ({"save_every": 0}, "save_every is 0 \\(int\\); expected a whole number of steps"),
        ({"save_every": True}, "save_every is True \\(bool\\); expected a whole number of steps"),
        ({"sample_rows": 1.5}, "sample_rows is 1.5 \\(float\\); expected integer"),
        ({"collections": ["weigths"]}, "'weigths', which is not a known collection.*did you mean 'weights'"),
        (
            {"collections": {"gradient": {"save": 1}}},
            "'gradient', which is not a known collection, and does not say what.*did you mean 'gradients'",
        ),
        ({"collections": [{"name": "all"}]}, "include='.' is everything"),
        ({"collections": {"weigths": False}}, "switches off 'weigths'.*did you mean 'weights'"),
        (
            {"collections": {"weights": 3}},
            "collections.weights is 3 \\(int\\); expected true, false or a mapping",
        ),
        ({"collections": 3}, "collections is 3 \\(int\\); expected a list of collections or a mapping"),
        ({"collections": [3]}, "collections holds 3 \\(int\\)"),
        ({"collections": ["weights", "weights"]}, "'weights' more than once"),
        ({"collections": [{"name": "x", "includ": "a"}]}, "includ is not a setting.*did you mean 'include'"),
        ({"collections": [{"name": "x", "include": "("}]}, "include is '\\('.*expected a regular expression"),
        ({"collections": [{"name": "x", "kinds": ["wieght"]}]}, "'wieght'.*did you mean 'weight'"),
        (
            {"collections": [{"name": "x", "kinds": 1}]},
            r"kinds is 1 \(int\); expected a name or a list of names",
        ),
        ({"collections": [{"name": "x", "tensors": {}}]}, "tensors is \\{\\}.*a name or a list of names"),
        (
            {"collections": [{"name": "x", "values": "all"}]},
            "values is 'all' .*expected 'stats', 'raw' or 'both'",
        ),
        ({"collections": [{"name": "x", "save": {"evry": 2}}]}, "save.evry is not a setting.*'every'"),
        ({"collections": [{"name": "x", "modes": {"evl": 2}}]}, "did you mean 'eval'"),
        ({"collections": [{"include": "x"}]}, "name is missing"),
        (3, "config is 3 \\(int\\); expected a mapping"),
        ("missing.json", "missing.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=sentence) as error:
        CaptureConfig.build(given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.yaml", "a: [1"), ("b.yaml", "- 1"), ("c.json", "3")]
)
def test_broken_files_are_refused_with_a_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=name):
        CaptureConfig.build(tmp_path / name)


def test_configuration_does_not_change_afterwards():
    config = CaptureConfig.build()
    with pytest.raises(ValueError, match="frozen"):
        config.save_every = 3


def test_interval_of_samples_is_from_a_tenth_of_a_second_to_a_minute():
    assert CaptureConfig.build().sample_interval_s == 0.5
    assert CaptureConfig.build({"sample_interval_s": 0.2}, sample_interval_s=60).sample_interval_s == 60
    for wrong in (0.05, 61):
        with pytest.raises(ConfigError, match=f"sample_interval_s is {wrong} .*expected"):
            CaptureConfig.build(sample_interval_s=wrong)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("capture.yaml", "save_every: [1"),
        ("capture.yaml", "save_every: 2026-13-45"),
        ("capture.yaml", "save_every: !!timestamp soon"),
        ("capture.yaml", "save_every: " + "9" * 5000),
        ("capture.json", "{"),
        ("capture.json", '{"save_every": ' + "9" * 5000 + "}"),
        ("capture.json", "[" * 100_000),
    ],
)
def test_file_that_cannot_be_parsed_is_told_in_one_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=rf"^The configuration file {name} is not valid (YAML|JSON): .+\.$"):
        load_config(tmp_path / name)
