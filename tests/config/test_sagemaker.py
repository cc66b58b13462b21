"""SageMaker Debugger's own files, as its documentation and its users write them."""

from __future__ import annotations

import json
import logging
import time

import pytest

from tdbg_lab.config import CaptureConfig, SaveSchedule
from tdbg_lab.config.sagemaker import HookJson, ProfilerJson, sagemaker_files
from tdbg_lab.config.sagemaker.names import sagemaker_names
from tdbg_lab.config.sagemaker.remarks import remark
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Mode

FULL = {
    "S3Path": "s3://bucket/prefix",
    "LocalPath": "newlogs/Run_A",
    "HookParameters": {
        "save_all": False,
        "include_regex": "regexE1,regexe2",
        "save_interval": "100",
        "save_steps": "1,2, 3,4",
        "start_step": "1",
        "end_step": "1000000",
        "reductions": "min,max,mean,     std,abs_variance,abs_sum,abs_l2_norm",
    },
    "CollectionConfigurations": [
        {
            "CollectionName": "Mine",
            "CollectionParameters": {
                "include_regex": "regexe5*",
                "save_interval": 50,
                "train.save_interval": "20",
                "eval.save_steps": [1, 2],
                "predict.end_step": 7,
                "global.start_step": 2,
                "reductions": "min,    abs_max,l1_norm,abs_l2_norm",
                "save_raw_tensor": "true",
                "save_shape": "true",
                "save_histogram": "false",
            },
        },
        {"CollectionName": "weights", "CollectionParameters": None},
    ],
}
EVERYTHING = {
    "S3OutputPath": "s3://bucket/prefix",
    "HookParameters": {
        "save_interval": "2",
        "save_all": "true",
        "include_workers": "all",
        "export_tensorboard": "true",
        "tensorboard_dir": "/tmp/tensorboard",
        "dry_run": "false",
        "save_raw_tensor": "true",
        "save_shape": "true",
    },
    "CollectionConfigurations": [],
}
PROFILER = {
    "ProfilingParameters": {
        "ProfilerEnabled": True,
        "LocalPath": "/opt/ml/output/Profiler",
        "RotateMaxFileSizeInBytes": "10485760",
        "RotateFileCloseIntervalInSeconds": "0.5",
        "FileOpenFailThreshold": "50",
        "DetailedProfilingConfig": '{"StartStep": "2", "NumSteps": "1", }',
        "DataloaderProfilingConfig": "{'StartTimeInSecSinceEpoch': '1', 'MetricsRegex': 'A.*', }",
        "PythonProfilingConfig": {"StartStep": 9, "ProfilerName": "cProfile", "cProfileTimer": "cpu_time"},
        "SMDataParallelProfilingConfig": "{}",
    }
}


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    """Each test hears its remarks, whatever another one heard before."""
    remark.cache_clear()


def collections(config):
    return {one.name: one for one in config.collections}


def test_hook_parameters_and_collections_become_ours():
    config = CaptureConfig.build(FULL)
    assert config.store == "newlogs/Run_A"
    assert config.ranks == "first"
    assert config.save_every == 100
    found = collections(config)
    assert list(found) == ["losses", "scalars", "custom", "Mine", "weights", "default"]
    assert found["default"].include == ("regexE1", "regexe2")
    assert found["Mine"].include == ("regexe5*",)
    assert found["weights"].kinds == ("weight",)
    assert [found[name].values for name in ("Mine", "weights", "default")] == ["both", "stats", "stats"]
    hook = SaveSchedule(every=100, start=100, end=1_000_000, steps=(1, 2, 3, 4))
    assert found["weights"].schedule(Mode.TRAIN, 1) == found["default"].schedule(Mode.EVAL, 1) == hook


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.TRAIN, {"every": 20, "start": 20, "end": 1_000_000, "steps": (1, 2, 3, 4)}),
        (Mode.EVAL, {"every": 50, "start": 50, "end": 1_000_000, "steps": (1, 2)}),
        (Mode.PREDICT, {"every": 50, "start": 50, "end": 7, "steps": (1, 2, 3, 4)}),
    ],
)
def test_collection_wins_over_the_hook_and_mode_over_all_modes(mode, expected):
    mine = collections(CaptureConfig.build(FULL))["Mine"]
    assert mine.schedule(mode, 1) == SaveSchedule(**expected)


def test_steps_are_multiples_of_the_interval_as_before():
    config = CaptureConfig.build({"HookParameters": {"save_interval": 3, "start_step": 4, "save_all": True}})
    schedule = collections(config)["all"].schedule(Mode.TRAIN, 1)
    assert [step for step in range(13) if schedule.saves(step)] == [6, 9, 12]


def test_what_is_not_said_is_as_in_the_documentation():
    config = CaptureConfig.build({"S3OutputPath": "s3://bucket/", "CollectionConfigurations": []})
    assert (config.store, config.save_every, config.ranks) == ("s3://bucket/", 500, "first")
    assert list(collections(config)) == ["losses", "scalars", "custom"]
    assert collections(config)["losses"].schedule(Mode.TRAIN, 500).every == 1


def test_every_key_of_the_hook_is_taken(caplog):
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        config = CaptureConfig.build(EVERYTHING)
    assert config.ranks == "all"
    assert collections(config)["all"].values == "both"
    assert "gradient" in collections(config)["all"].kinds
    assert "event files are not written while training" in caplog.text
    assert CaptureConfig.build({"HookParameters": {"dry_run": "True"}}).collections == ()
    kept = CaptureConfig.build(json.loads(json.dumps(config.dump())))
    assert kept == config


def test_caller_wins_over_the_file():
    config = CaptureConfig.build(FULL, save_every=3, collections=["weights"])
    assert config.save_every == 3
    assert list(collections(config)) == ["weights"]


def test_names_of_its_collections_are_known_in_every_framework():
    names = (
        "outputs",
        "inputs",
        "layers",
        "optimizer_variables",
        "sm_metrics",
        "feature_importance",
        "trees",
    )
    entries = [{"CollectionName": name} for name in names]
    assert set(names) <= set(collections(CaptureConfig.build({"CollectionConfigurations": entries})))


def test_profiler_is_taken_as_it_is_and_its_profiles_are_planned(caplog):
    parsed = ProfilerJson.parse(PROFILER)
    assert parsed.enabled
    assert parsed.local_path == "/opt/ml/output/Profiler"
    assert (
        parsed.ranges["DetailedProfilingConfig"].start_step,
        parsed.ranges["DetailedProfilingConfig"].num_steps,
    ) == (2, 1)
    assert parsed.ranges["DataloaderProfilingConfig"].options == {"MetricsRegex": "A.*"}
    assert parsed.ranges["PythonProfilingConfig"].options["ProfilerName"] == "cProfile"
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        config = CaptureConfig.build(PROFILER)
    assert config.profiler
    assert config.collections == CaptureConfig.build().collections
    assert [one.model_dump(exclude_none=True) for one in config.profiles] == [
        {"start": 2, "steps": 1, "operators": True, "python": "off"},
        {"start": 9, "steps": 1, "operators": False, "python": "calls"},
    ]
    assert "cProfileTimer is total_time" in caplog.text
    assert "SMDataParallelProfilingConfig: this profile is not made while training" in caplog.text


def test_profiles_of_one_range_are_made_together_and_of_a_time_that_is_over_not(caplog):
    ahead, over = time.time() + 3600, {"StartTimeInSecSinceEpoch": 1, "DurationInSeconds": 60}
    both = {"StartStep": 4, "NumSteps": "3"}
    parameters = {"DetailedProfilingConfig": both}
    parameters["PythonProfilingConfig"] = {**both, "ProfilerName": "pyinstrument"}
    (together,) = CaptureConfig.build({"ProfilingParameters": parameters}).profiles
    assert (together.start, together.steps, together.operators, together.python) == (4, 3, True, "sampling")
    later = {"DetailedProfilingConfig": {"StartTimeInSecSinceEpoch": ahead, "DurationInSeconds": 2}}
    (timed,) = CaptureConfig.build({"ProfilingParameters": later}).profiles
    assert (timed.start_s, timed.seconds, timed.python) == (ahead, 2, "off")
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        parameters = {"DetailedProfilingConfig": over, "PythonProfilingConfig": {"ProfilerName": "cprofile"}}
        assert CaptureConfig.build({"ProfilingParameters": parameters}).profiles == ()
        parameters = {"DetailedProfilingConfig": {"NumSteps": 5000}}
        assert CaptureConfig.build({"ProfilingParameters": parameters}).profiles[0].steps == 1000
    assert "DetailedProfilingConfig: its time is over" in caplog.text
    assert "PythonProfilingConfig has no range" in caplog.text
    assert "1000 of 5000 steps" in caplog.text
    off = {"DisableProfiler": True, "ProfilingParameters": {"DetailedProfilingConfig": both}}
    assert CaptureConfig.build(off).profiles == ()


def test_interval_of_the_profiler_is_that_of_the_samples():
    assert CaptureConfig.build({"ProfilingIntervalInMilliseconds": "200"}).sample_interval_s == 0.2
    assert (
        CaptureConfig.build({**PROFILER, "ProfilingIntervalInMilliseconds": 60_000}).sample_interval_s == 60
    )
    assert CaptureConfig.build(PROFILER).sample_interval_s == 0.5


def test_interval_may_stand_among_the_parameters_and_what_stands_above_them_wins():
    """SageMaker takes any key there, and every value as a text."""
    within = {"ProfilingParameters": {"ProfilingIntervalInMilliseconds": "200"}}
    assert CaptureConfig.build(within).sample_interval_s == 0.2
    assert CaptureConfig.build({**within, "ProfilingIntervalInMilliseconds": 1000}).sample_interval_s == 1
    assert ProfilerJson.parse(within).enabled


def test_keys_of_the_profiler_are_known_in_any_case():
    """SageMaker's documents write ``DataLoaderProfilingConfig``, smdebug's ``DataloaderProfilingConfig``."""
    parameters = {
        "DataLoaderProfilingConfig": '{"startstep": 3, "MetricsRegex": "Kept.As-Is"}',
        "pythonprofilingconfig": {"STARTSTEP": 4, "numsteps": 2, "cprofiletimer": "default"},
        "localpath": "/opt/ml/Profiler",
    }
    parsed = ProfilerJson.parse({"ProfilingParameters": parameters})
    assert parsed.local_path == "/opt/ml/Profiler"
    loading = parsed.ranges["DataloaderProfilingConfig"]
    assert (loading.start_step, loading.options) == (3, {"MetricsRegex": "Kept.As-Is"})
    python = parsed.ranges["PythonProfilingConfig"]
    assert (python.start_step, python.num_steps, python.options) == (4, 2, {"cProfileTimer": "default"})


def test_remark_is_made_once_however_often_a_configuration_is_read(caplog):
    with caplog.at_level(logging.WARNING, "tdbg_lab"):
        for _ in range(3):
            CaptureConfig.build(EVERYTHING)
            CaptureConfig.build(PROFILER)
    assert caplog.text.count("export_tensorboard: event files are not written while training") == 1
    assert caplog.text.count("cProfileTimer is total_time") == 1


@pytest.mark.parametrize(
    "given",
    [
        {"DisableProfiler": True},
        {"DisableProfiler": "true", **PROFILER},
        {"ProfilingParameters": {}},
        {"ProfilingParameters": {"ProfilerEnabled": "false"}},
    ],
)
def test_profiler_is_turned_off(given):
    assert CaptureConfig.build(given).profiler is False


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"LocalPath": "x", "HookParameter": {}}, "no key 'HookParameter'.*did you mean 'HookParameters'"),
        ({"HookParameters": {"save_intervall": 3}}, "no key 'save_intervall'.*did you mean 'save_interval'"),
        ({"HookParameters": {"Save_interval": 3}}, "HookParameters has no key 'Save_interval'"),
        ({"HookParameters": {"warm.save_interval": 3}}, "no key 'warm.save_interval'"),
        ({"HookParameters": []}, "HookParameters is \\[\\] \\(list\\); expected an object"),
        (
            {"HookParameters": {"save_interval": "10*10"}},
            "save_interval is '10\\*10' .*expected a whole number",
        ),
        ({"HookParameters": {"save_interval": 0}}, "save_interval is 0 .*expected at least 1"),
        ({"HookParameters": {"start_step": True}}, "start_step is True .*expected a whole number"),
        ({"HookParameters": {"save_steps": "1;2"}}, "save_steps is '1;2' .*expected steps"),
        ({"HookParameters": {"save_all": "perhaps"}}, "save_all is 'perhaps' .*expected true or false"),
        ({"HookParameters": {"include_regex": "("}}, "include_regex is '\\('; expected a regular expression"),
        ({"HookParameters": {"include_workers": "two"}}, "include_workers is 'two'; expected 'one' or 'all'"),
        (
            {"HookParameters": {"reductions": "median"}},
            "reductions names 'median'; expected some of min, max",
        ),
        (
            {"ProfilingIntervalInMilliseconds": 300},
            "ProfilingIntervalInMilliseconds is 300; expected one of 100, 200, 500, 1000, 5000, 60000",
        ),
        (
            {"ProfilingParameters": {"ProfilingIntervalInMilliseconds": "300"}},
            "ProfilingParameters.ProfilingIntervalInMilliseconds is 300; expected one of 100, 200",
        ),
        ({"LocalPath": 3}, "LocalPath is 3 \\(int\\); expected a text"),
        ({"CollectionConfigurations": {}, "LocalPath": "x", "S3Path": []}, "S3Path is \\[\\]"),
        ({"CollectionConfigurations": "weights"}, "expected a list of collections"),
        ({"CollectionConfigurations": ["weights"]}, "holds 'weights' \\(str\\); expected objects"),
        ({"CollectionConfigurations": [{"CollectionParameters": {}}]}, "has no CollectionName"),
        ({"CollectionConfigurations": [{"CollectionName": "wieghts"}]}, "'wieghts'.*did you mean 'weights'"),
        (
            {"CollectionConfigurations": [{"CollectionName": "a", "Parameters": {}}]},
            "has no key 'Parameters'",
        ),
        ({"ProfilingParameters": {"DetailedProfilingConfg": "{}"}}, "did you mean 'DetailedProfilingConfig'"),
        ({"ProfilingParameters": {"DetailedProfilingConfig": "{'StartStep': 1 + 1}"}}, "expected an object"),
        (
            {"ProfilingParameters": {"PythonProfilingConfig": "__import__('os').getcwd()"}},
            "expected an object or the text of one",
        ),
        ({"ProfilingParameters": {"DetailedProfilingConfig": "(" * 4000}}, "expected an object"),
        (
            {"ProfilingParameters": {"DetailedProfilingConfig": {"StartStep": 1, "DurationInSeconds": 2}}},
            "both StartStep and DurationInSeconds",
        ),
        (
            {"ProfilingParameters": {"PythonProfilingConfig": {"ProfilerName": "yappi"}}},
            "ProfilerName is 'yappi'; expected one of cprofile, pyinstrument",
        ),
        ({"ProfilingParameters": {"RotateFileCloseIntervalInSeconds": "soon"}}, "expected a number"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(given, sentence):
    with pytest.raises(ConfigError, match=sentence) as error:
        CaptureConfig.build(given)
    assert "\n" not in str(error.value)


def test_files_of_the_environment_are_read_together(tmp_path):
    for name, content in (("hook.json", FULL), ("profiler.json", {"ProfilingParameters": {}})):
        (tmp_path / name).write_text(json.dumps(content))
    named = {
        "SMDEBUG_CONFIG_FILE_PATH": str(tmp_path / "hook.json"),
        "SMPROFILER_CONFIG_PATH": str(tmp_path / "profiler.json"),
    }
    config = CaptureConfig.build(sagemaker_files(named))
    assert (config.store, config.profiler) == ("newlogs/Run_A", False)
    assert sagemaker_files({}) is None
    (tmp_path / "hook.json").write_text('{"save_every": 3}')
    with pytest.raises(ConfigError, match=r"SMDEBUG_CONFIG_FILE_PATH names .*hook\.json, which is not"):
        sagemaker_files(named)


def test_hook_json_keeps_case_and_says_only_what_the_file_says():
    hook = HookJson.parse(FULL)
    assert hook.local_path == "newlogs/Run_A"
    assert hook.s3_path == "s3://bucket/prefix"
    assert hook.schedule("train", hook.collections[1])["save_interval"] == 100
    assert hook.collections[1].what == {}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("activation/block.relu", "block.relu_output_0"),
        ("activation/attention:1", "attention_output_1"),
        ("input/fc1", "fc1_input_0"),
        ("loss/CrossEntropyLoss", "CrossEntropyLoss_output_0"),
        ("gradient/dense/kernel", "gradients/dense/kernelGrad"),
        ("activation/dense", "dense/outputs"),
    ],
)
def test_names_of_tensors_are_known(ours, theirs):
    assert theirs in sagemaker_names(ours)
