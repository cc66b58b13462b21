"""What SageMaker Debugger left in a bucket opens in place: stores, profiler folders, trials, readers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tdbg_lab.errors import ConflictError, NotFoundError
from tdbg_lab.records import RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.smdebug.profiler import S3AlgorithmMetricsReader, S3SystemMetricsReader
from tdbg_lab.smdebug.profiler.analysis.notebook_utils import TrainingJob
from tdbg_lab.smdebug.profiler.analysis.python_profile_analysis import cProfileAnalysis
from tdbg_lab.smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from tdbg_lab.smdebug.trials import S3Trial, create_trial
from tdbg_lab.store.remote.failures import RemoteError
from tests.store.remote.buckets import PROVIDERS

DATA = Path(__file__).parents[2] / "data" / "smdebug"
END = "training_job_end.ts"


def upload(bucket, name, prefix, keep=lambda _key: True):
    """Put the files of a recorded folder below a prefix."""
    for file in sorted((DATA / name).rglob("*")):
        key = str(file.relative_to(DATA / name))
        if file.is_file() and keep(key):
            bucket.write(f"{prefix}/{key}", file.read_bytes() or b"\n")  # Azurite takes no empty ones


@pytest.fixture
def options(bucket, monkeypatch):
    """Options of the bucket, for code that takes none."""
    monkeypatch.setenv("TDBG_STORAGE_OPTIONS", json.dumps(bucket.options))
    return bucket.options


@pytest.mark.parametrize("bucket", PROVIDERS, indirect=True)
def test_store_in_a_bucket_reads_as_the_folder_does(bucket):
    upload(bucket, "workers", "job/debug-output")
    run = open_run(bucket.url("job/debug-output"), storage_options=bucket.options)
    here = open_run(DATA / "workers")
    assert run.status is RunStatus.FINISHED
    assert run.tensor_names() == here.tensor_names()
    assert run.ranks() == here.ranks() == [0, 1]
    for name in here.raw_names():
        for step in here.raw_steps(name):
            for rank in here.ranks():
                np.testing.assert_array_equal(
                    run.tensor(name).value(step, rank=rank), here.tensor(name).value(step, rank=rank)
                )
    assert run.problems == []


def test_store_that_grows_in_a_bucket_is_seen_and_fetched_once(bucket, proxy):
    upload(bucket, "workers", "job", keep=lambda key: "000000000002" not in key and key != END)
    run = open_run(bucket.url("job"), storage_options=bucket.through(proxy))
    run._mirror._interval_s = 0
    assert run.last_step == 1
    fetched = len([each for each in proxy.requests if "tfevents" in each])
    assert fetched == 4
    upload(bucket, "workers", "job", keep=lambda key: "000000000002" in key or key == END)
    assert run.refresh()
    assert run.last_step == 2
    assert run.status is RunStatus.FINISHED
    assert len([each for each in proxy.requests if "tfevents" in each]) == 6


def test_store_that_is_replaced_in_a_bucket_leaves_nothing_behind(bucket):
    upload(bucket, "workers", "job")
    run = open_run(bucket.url("job"), storage_options=bucket.options)
    run._mirror._interval_s = 0
    for key in bucket.names():
        bucket.delete(key)
    upload(bucket, "pytorch", "job")
    assert run.refresh()
    assert run.tensor_names() == open_run(DATA / "pytorch").tensor_names()


def test_bucket_that_fails_leaves_readable_what_was_fetched(bucket, proxy):
    upload(bucket, "workers", "job")
    run = open_run(bucket.url("job"), storage_options=bucket.through(proxy))
    run._mirror._interval_s = 0
    proxy.denied = True
    run.refresh()
    assert run.last_step == 2
    assert any("do not allow to list" in each for each in run.problems)
    with pytest.raises(ConflictError, match="takes no requests"):
        run.request_stop()


def test_trial_in_a_bucket_answers_as_the_one_in_a_folder(bucket, options):
    upload(bucket, "workers", "job/debug-output")
    there = create_trial(bucket.url("job/debug-output"), name="resnet")
    here = create_trial(DATA / "workers")
    assert isinstance(there, S3Trial)
    assert there.path == bucket.url("job/debug-output")
    assert there.tensor_names() == here.tensor_names()
    assert there.steps() == here.steps() == [0, 1, 2]
    assert there.workers() == here.workers()
    assert there.num_workers == 2
    for name in here.tensor_names():
        for worker in here.workers():
            left, right = (one.tensor(name).values(worker=worker) for one in (there, here))
            assert left.keys() == right.keys()
            for step, value in right.items():
                np.testing.assert_array_equal(left[step], value)


def test_trial_waits_for_what_a_job_in_the_cloud_saves_next(bucket, options, monkeypatch):
    monkeypatch.setattr("tdbg_lab.store.remote.copying.INTERVAL_S", 0)
    upload(bucket, "workers", "job", keep=lambda key: "000000000002" not in key and key != END)
    trial = create_trial(bucket.url("job"))
    trial._copy._interval_s = 0
    assert trial.steps() == [0, 1]
    upload(bucket, "workers", "job", keep=lambda key: "000000000002" in key)
    trial.wait_for_steps([2])
    assert trial.steps() == [0, 1, 2]


def test_trial_reads_a_run_of_ours_in_a_bucket(bucket, options):
    from tests.store.remote.sending import fake_training, send

    training, spooled = fake_training(bucket.url("first"))
    for _ in range(3):
        training.step()
    training.end()
    assert send(spooled, options)
    trial = create_trial(bucket.url("first"))
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor_names() == create_trial(training.path).tensor_names()


def test_profiler_output_in_a_bucket_is_read(bucket, options):
    upload(bucket, "profiler", "job/profiler-output")
    address = bucket.url("job/profiler-output")
    here = open_run(DATA / "profiler")
    reader = S3AlgorithmMetricsReader(address)
    first, last = (
        reader.get_timestamp_of_first_available_file(),
        reader.get_timestamp_of_latest_available_file(),
    )
    assert len(reader.get_events(first, last + 1)) == len(here.spans()) == 42
    assert S3SystemMetricsReader(address).get_timestamp_of_first_available_file() == 0
    assert len(PandasFrame(address).get_all_framework_metrics()) == 42
    job = TrainingJob(address)
    assert job.profiler_s3_output_path == address
    assert len(job.get_framework_metrics_reader().get_events_by_step(1, 2))
    there = cProfileAnalysis("/nowhere", s3_path=address).list_profile_stats()
    assert len(there) == len(cProfileAnalysis(DATA / "profiler").list_profile_stats()) == 4


def test_mistakes_get_one_sentence(bucket, options):
    with pytest.raises(NotFoundError, match=r"There is no run at s3://.*/nothing: it has no run\.json, nor"):
        open_run(bucket.url("nothing"))
    with pytest.raises(RemoteError, match="There is no bucket 'nobody'"):
        create_trial("s3://nobody/job")


def test_names_that_lead_out_are_passed_over(bucket):
    upload(bucket, "pytorch", "job")
    for key in ("events/.hidden", "index/a\\b", "collections/x.tmp", "elsewhere/file"):
        bucket.write(f"job/{key}", b"x")
    run = open_run(bucket.url("job"), storage_options=bucket.options)
    held = {str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file()}
    wanted = {str(path.relative_to(DATA / "pytorch")) for path in (DATA / "pytorch").rglob("*")}
    assert held - {".mirror"} <= wanted
