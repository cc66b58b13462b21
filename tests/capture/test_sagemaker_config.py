"""`attach` and ``tdbg run`` with a configuration that was written for SageMaker Debugger."""

from __future__ import annotations

import json

import pytest
import torch

import tdbg_lab as tdbg
from tdbg_lab.errors import NotFoundError, StepNotFoundError

SCRIPT = """
import os, torch
os.chdir("/")
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.nn.MSELoss()
for step in range(7):
    optimizer.zero_grad()
    loss(model(torch.ones(3, 4)), torch.zeros(3, 1)).backward()
    optimizer.step()
"""


@pytest.fixture
def hook_file(tmp_path):
    path = tmp_path / "debughookconfig.json"
    config = {
        "S3OutputPath": "s3://bucket/prefix",
        "LocalPath": str(tmp_path / "Tensors"),
        "HookParameters": {"save_interval": "3", "reductions": "mean,abs_max", "export_tensorboard": "true"},
        "CollectionConfigurations": [
            {"CollectionName": "gradients", "CollectionParameters": {"train.save_steps": "1"}},
            {
                "CollectionName": "ReluActivation",
                "CollectionParameters": {"include_regex": "1_output", "save_raw_tensor": "true"},
            },
        ],
    }
    path.write_text(json.dumps(config))
    return path


def assert_as_asked(run):
    names = run.tensor_names()
    assert {"gradient/0.weight", "activation/1", "loss/MSELoss"} <= set(names)
    assert not {"0.weight", "activation/0", "activation/2"} & set(names)
    assert list(run.steps(tensor="gradient/0.weight")) == [0, 1, 3, 6]
    assert list(run.steps(tensor="activation/1")) == [0, 3, 6]
    assert run.tensor("activation/1").value(3).shape == (3, 5)
    with pytest.raises((StepNotFoundError, NotFoundError)):
        run.tensor("gradient/0.weight").value(3)


def test_attach_takes_the_file(tmp_path, hook_file):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.MSELoss()
    with tdbg.attach(model, loss=loss, config=hook_file, profiler=False, strict=True) as handle:
        for _ in range(7):
            optimizer.zero_grad()
            loss(model(torch.ones(3, 4)), torch.zeros(3, 1)).backward()
            optimizer.step()
    assert handle.run_path == tmp_path / "Tensors"
    assert_as_asked(tdbg.open_run(tmp_path / "Tensors"))


@pytest.mark.parametrize("by_environment", [True, False])
def test_tdbg_run_takes_the_file(tmp_path, hook_file, python, by_environment):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {"SMDEBUG_CONFIG_FILE_PATH": str(hook_file)} if by_environment else {}
    options = [] if by_environment else ["--config", hook_file.name]
    fixed = ["-m", "tdbg_lab.run", "--rules", "none", "--no-profiler"]
    done = python(*fixed, *options, "script.py", **environment)
    assert done.returncode == 0, done.stderr
    assert_as_asked(tdbg.open_run(tmp_path / "Tensors"))
    assert done.stderr.count("export_tensorboard: event files are not written while training") == 1
    assert "captured" in done.stderr
