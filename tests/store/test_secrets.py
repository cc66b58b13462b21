"""Secrets among the arguments of a training do not stand in its run."""

from __future__ import annotations

import shlex
import sys

import pytest

from tdbg_lab.store import create_run
from tdbg_lab.store.secrets import mask_values, mask_words

TOKEN = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("train.py --api-key=s3cr3t --lr 0.1", "train.py --api-key=*** --lr 0.1"),
        ("train.py --password hunter2 --lr 0.1", "train.py --password *** --lr 0.1"),
        ("train.py --hub_token abcdefgh12", "train.py --hub_token ***"),
        (
            "train.py logger.wandb.api_key=abc +hub.token=abcdefgh12",
            "train.py logger.wandb.api_key=*** +hub.token=***",
        ),
        (
            "train.py HF_TOKEN=abcdefgh12 AWS_SECRET_ACCESS_KEY=x/y",
            "train.py HF_TOKEN=*** AWS_SECRET_ACCESS_KEY=***",
        ),
        (f"train.py {TOKEN}", "train.py hf_***"),
        ("train.py --db postgres://me:pw@host/db", "train.py --db postgres://me:***@host/db"),
        ("train.py --data=https://host/x?a=1&sig=abc", "train.py --data=https://host/x?a=1&sig=***"),
        ("train.py https://host/x?token=abc", "train.py https://host/x?token=***"),
    ],
)
def test_secret_in_a_command_line_is_masked(given, written):
    assert " ".join(mask_words(given.split())) == written


@pytest.mark.parametrize(
    "given",
    [
        "train.py --tokenizer bert-base-uncased --max-tokens 512 --pad-token <pad> --mask_token=[MASK]",
        "train.py --eos-token 50256 --token --key 12345678 --keys=a,b",
        "train.py --data s3://bucket/a=b/c ssh://git@host/x user@host:/x optimizer.lr=0.1 --no-password",
        "train.py --password= --author me",
    ],
)
def test_other_arguments_stay(given):
    assert mask_words(given.split()) == given.split()


def test_run_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--api-key", "s3cr3t words", "--name", "a b"])
    given = {
        "api_key": "s3cr3t",
        "lr": 0.1,
        "hub": {"token": TOKEN, "pad_token": "<pad>"},
        "urls": ["x://u:s3cr3t@h"],
    }
    run = create_run(tmp_path / "run", hyperparameters=given, capture={})
    assert shlex.split(run.info.command) == ["train.py", "--api-key", "***", "--name", "a b"]
    assert run.info.hyperparameters == {
        "api_key": "***",
        "lr": 0.1,
        "hub": {"token": "***", "pad_token": "<pad>"},
        "urls": ["x://u:***@h"],
    }
    assert "s3cr3t" not in (run.path / "run.json").read_text()
    assert given["api_key"] == "s3cr3t"
    assert mask_values({"a": None, "password": 7}) == {"a": None, "password": 7}


def test_odd_arguments_do_not_end_a_training(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [tmp_path / "train.py", "caf\udce9", "=", "--", ""])
    assert create_run(tmp_path / "run").info.command.startswith(str(tmp_path))
