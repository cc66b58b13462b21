"""Several processes: one directory each, read together or apart, and stopped together."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from distributed_training import Net, steps
from two_processes import HERE, environment, launched, told_by_each

from tdbg_lab.capture.ranks import Meeting, Place, role
from tdbg_lab.errors import CaptureError, ConfigError
from tdbg_lab.rules import run_rules
from tdbg_lab.run import open_run
from tdbg_lab.store import requests

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="needs gloo"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """All scenarios, run once by torchrun in two processes."""
    root = tmp_path_factory.mktemp("distributed")
    launched(HERE / "distributed_training.py", root)
    return root, told_by_each(root)


def test_replicas_train_to_the_same_bits_and_each_writes_its_own_directory(trained):
    root, told = trained
    assert [one["ddp"]["same"] for one in told] == [True, True]
    for name in ("ddp", "ddp-2"):
        run = open_run(root / name)
        assert run.ranks() == [0, 1], name
        assert run.info.world_size == 2
        assert str(run.status) == "finished"
        weight = run.tensor_names(kind="weight")[0]
        assert run.steps(tensor=weight).tolist() == [0, 2, 4]


def test_ranks_are_read_together_or_apart(trained):
    run = open_run(trained[0] / "ddp")
    names, columns = ["first.weight", "activation/first"], ["count", "l2", "mean"]
    apart = [run.stats(names, columns, rank=rank) for rank in (0, 1)]
    both = run.stats(names, columns)
    assert (both["count"].to_numpy() == 2 * apart[0]["count"].to_numpy()).all()
    weights = [one[one.tensor == "first.weight"]["l2"].to_numpy() for one in apart]
    outputs = [one[one.tensor == "activation/first"]["mean"].to_numpy() for one in apart]
    # The order of a sum depends on whether the kernels were loaded already, each rank for itself.
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6, err_msg="replicas are the same")
    assert (outputs[0] != outputs[1]).all(), "their data are not"


def test_what_a_wrapper_holds_is_seen_alone_and_with_accumulation(trained):
    run = open_run(trained[0] / "inner")
    assert run.ranks() == [0, 1]
    assert run.steps(tensor="gradient/first.weight").tolist() == [0, 2]
    assert "activation/first" in run.tensor_names()


def test_chosen_ranks_write_and_the_others_only_count(trained):
    root, told = trained
    for name, ranks in (("first", [0]), ("second", [1])):
        run = open_run(root / name)
        assert run.ranks() == ranks
        assert str(run.status) == "finished"
        assert [one["chosen"][name] for one in told] == [[str(root / name), 3]] * 2


def test_a_straggler_shows_in_the_phases_of_its_rank(trained):
    run = open_run(trained[0] / "straggler")
    spans = run.spans(phases=["forward", "backward"])
    median = spans.groupby(["rank", "phase"])["duration_ns"].median() / 1e6
    assert median[1, "forward"] > 95
    assert median[0, "forward"] < 80
    assert median[0, "backward"] > 1.5 * median[1, "backward"], "the others wait for it"
    assert len(run.scalars("tdbg/step_ms", rank=0).values) > 0


def test_a_diverging_replica_shows_in_its_weights(trained):
    run = open_run(trained[0] / "diverging")
    apart = [run.stats("first.weight", "l2", rank=rank)["l2"].to_numpy() for rank in (0, 1)]
    assert apart[0][0] == apart[1][0]
    assert (apart[0][1:] != apart[1][1:]).all()


def test_a_stop_ends_all_ranks_after_the_same_step(trained):
    root, told = trained
    assert told[0]["stop"] == told[1]["stop"], "same step, same weights"
    assert told[0]["stop"]["reason"] == "enough"
    run = open_run(root / "stop")
    assert str(run.status) == "stopped"
    step = told[0]["stop"]["step"]
    assert [(one.state, one.answer) for one in requests(root / "stop")] == [
        ("done", f"stopped at step {step}")
    ]


def test_a_setting_is_changed_on_all_ranks_at_the_same_step(trained):
    root, told = trained
    assert told[0]["settings"] == told[1]["settings"], "same rates at the same steps, same weights"
    rates = told[0]["settings"]["rates"]
    first = rates[0]
    records = open_run(root / "settings").setting_changes()
    assert [one.state for one in records] == ["done"] * 3
    down, clip, up = (one.step for one in records)
    assert down < clip < up
    expected = [first * (0.1 if down <= step < up else 1.0) for step in range(24)]
    assert rates == pytest.approx(expected)


def test_shards_are_measured_where_they_are_and_merge_to_the_whole(trained):
    root, told = trained
    assert all(one["fsdp"]["same"] for one in told)
    run = open_run(root / "fsdp")
    torch.manual_seed(0)
    whole = Net().first.weight
    both = run.stats("first.weight", ["count", "l2", "min", "max"], steps=(0, 0)).iloc[0]
    assert both["count"] == whole.numel()
    assert both["l2"] == pytest.approx(whole.norm().item(), rel=1e-6)
    assert (both["min"], both["max"]) == (whole.min().item(), whole.max().item())
    (key,) = run.tensors(regex="^first.weight$")
    assert key.shape == (16, 8)
    assert "shard" in key.collections
    parts = [run.tensor("first.weight").value(0, rank=rank) for rank in (0, 1)]
    assert np.array_equal(np.concatenate(parts), whole.detach().numpy())
    names = run.tensor_names(kind="optimizer")
    assert "optimizer/grad_norm_shard" in names
    assert "optimizer/grad_norm" not in names
    assert "activation/Net" in run.tensor_names() or "activation/first" in run.tensor_names()
    assert open_run(root / "fsdp-first").ranks() == [0]


def test_flattened_shards_have_names_without_wrappers_and_are_no_replicas(trained):
    root, _ = trained
    for name, weight in (("flat", "_flat_param"), ("pieces", "first.weight")):
        run = open_run(root / name)
        (key,) = run.tensors(regex=f"^{weight}$")
        (gradient,) = run.tensors(regex=f"^gradient/{weight}$")
        assert "shard" in key.collections
        assert "shard" in gradient.collections
        assert "activation/first" in run.tensor_names()
        assert "optimizer/grad_norm_shard" in run.tensor_names()
        assert run_rules(root / name, ["diverging_replicas", "parameters_without_gradient"]) == [], name


def test_ranks_that_divide_each_layer_need_the_same_batch_and_replicas_do_not(trained):
    root, _ = trained
    assert run_rules(root / "split", ["same_batches", "diverging_replicas"]) == []
    (found,) = run_rules(root / "copied", ["same_batches"])
    assert found.message.startswith("2 ranks trained on the same batches")


def test_a_killed_rank_leaves_everything_up_to_its_last_step_readable(tmp_path):
    last = random.randrange(3, 30)
    command = [sys.executable, HERE / "killed_training.py", tmp_path / "run", str(last), tmp_path / "meet"]
    both = [
        subprocess.Popen(command, env=environment(RANK=str(rank)), stderr=subprocess.PIPE) for rank in (0, 1)
    ]
    try:
        texts = [one.communicate(timeout=200)[1] for one in both]
    finally:
        for one in both:
            one.kill()
    assert both[1].returncode == -9, texts[1]
    run = open_run(tmp_path / "run")
    assert str(run.status) == "failed", "the other one could not go on alone"
    assert run.ranks() == [0, 1]
    for rank in (0, 1):
        seen = run.stats("gradient/first.weight", "l2", rank=rank)
        assert seen.step.tolist() == list(range(last)), (last, rank)
        assert np.isfinite(seen.l2).all()
    assert run.stats("activation/first", "l2", rank=0).step.tolist() == list(range(last + 1))
    assert not run.problems


def test_data_parallel_without_devices_is_seen(attach):
    model = torch.nn.DataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attach(model, optimizer=optimizer) as handle:
        steps(model, optimizer, 2, rank=0)
    assert {"first.weight", "gradient/first.weight", "activation/act"} <= set(handle.run.tensor_names())


def test_layers_that_run_in_threads_keep_their_rows_apart(attach):
    """What DataParallel does on several devices."""

    class Branch(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x):
            return torch.full_like(x, self.value)

    class Threads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.branches = torch.nn.ModuleList(Branch(index) for index in range(24))

        def forward(self, x):
            return sum(pool.map(lambda branch: branch(x), self.branches))

    model = Threads()
    with ThreadPoolExecutor(8) as pool, attach(model) as handle:
        for _ in range(20):
            model(torch.zeros(3, 5))
    for index in range(24):
        seen = handle.run.stats(f"activation/branches.{index}", ["min", "max"])
        assert len(seen) == 20
        assert (seen["min"] == index).all()
        assert (seen["max"] == index).all()


def test_a_pipeline_of_modules_is_seen_under_the_names_given(attach):
    front, back = torch.nn.Linear(8, 4), torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD([*front.parameters(), *back.parameters()], lr=0.1)
    with attach({"front": front, "back": back}, optimizer=optimizer) as handle:
        steps(lambda x: back(front(x)), optimizer, 3, rank=0)
    run = handle.run
    assert {"front.weight", "gradient/back.weight", "activation/front", "activation/back"} <= set(
        run.tensor_names()
    )
    assert run.steps(tensor="activation/back").tolist() == [0, 1, 2]


@pytest.mark.parametrize("ranks", ["none", [], [2], [-1], [True], 0, ["0"]])
def test_wrong_ranks_are_refused_with_what_is_expected(ranks):
    with pytest.raises(ConfigError, match="expected 'all', 'first' or a list of ranks from 0 to 1"):
        role(ranks, Place(0, 2))


def test_a_rank_that_waits_alone_says_what_to_do(tmp_path):
    with pytest.raises(CaptureError, match=r"Rank 1 waited .* run nothing; call attach on all ranks"):
        Meeting("nothing", Place(1, 2), timeout_s=0.1).wait(tmp_path / "nothing")


def test_without_a_process_group_the_newest_run_that_goes_on_is_joined(tmp_path):
    from tdbg_lab.store import create_run

    create_run(tmp_path / "run").set_status("finished")
    newest = create_run(tmp_path / "run")
    assert newest.path.name == "run-2"
    assert Meeting("", Place(1, 2)).wait(tmp_path / "run") == (newest.path, 0)
