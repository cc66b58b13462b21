"""Findings and figures on tracking servers, with the real libraries, without a network."""

from __future__ import annotations

import json

import pytest

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError, ConflictError, NotFoundError


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("test")
    yield mlflow
    while mlflow.active_run() is not None:
        mlflow.end_run()


def test_mlflow_gets_findings_figures_and_numbers(mlflow, run, tmp_path):
    with mlflow.start_run() as active:
        assert tdbg.log_to_mlflow(run, scalars="^loss$") == active.info.run_id
    client = mlflow.MlflowClient()
    stored = client.get_run(active.info.run_id)
    assert stored.data.metrics["tdbg/findings/warning"] == 1
    assert stored.data.metrics["tdbg/findings/critical"] == 0
    assert stored.data.tags["tdbg.id"] == run.info.id
    assert [m.step for m in client.get_metric_history(active.info.run_id, "loss")] == list(range(6))
    (folder,) = (tmp_path / "mlruns").glob(f"*/{active.info.run_id}/artifacts/tdbg")
    (finding,) = json.loads((folder / "findings.json").read_text())["findings"]
    assert finding["message"] == "All is dead."
    assert "plotly" in (folder / "scalars.html").read_text().lower()
    assert (folder / "overview.html").exists()


def test_mlflow_keeps_a_number_beside_those_in_the_folder_of_its_name(mlflow, tmp_path):
    with tdbg.attach(store=tmp_path / "both", strict=True, profiler=False) as handle:
        handle.log({"loss": 1.0, "loss/mse": 2.0, "acc/top/1": 3.0, "acc": 4.0, "lr/0": 5.0})
    with mlflow.start_run() as active:
        mlflow.log_metric("lr", 0.5)  # the program's own
        for _ in range(2):
            tdbg.log_to_mlflow(tmp_path / "both", views=[], scalars=".")
    found = mlflow.MlflowClient().get_run(active.info.run_id).data.metrics
    values = {name: value for name, value in found.items() if not name.startswith(("tdbg", "optimizer"))}
    assert values == {
        "loss": 1.0,
        "loss.mse": 2.0,
        "acc/top/1": 3.0,
        "acc.value": 4.0,
        "lr": 0.5,
        "lr.0": 5.0,
    }


def test_mlflow_without_an_active_run_says_what_to_do(mlflow, run):
    with pytest.raises(ConflictError, match="MLflow has no active run; call this within"):
        tdbg.log_to_mlflow(run)


def test_unknown_views_are_refused(mlflow, run):
    with mlflow.start_run():
        with pytest.raises(NotFoundError, match="nosuch"):
            tdbg.log_to_mlflow(run, views=["nosuch"])
        with pytest.raises(ConfigError, match="views is 'scalars'; expected a list"):
            tdbg.log_to_mlflow(run, views="scalars")


def test_wandb_gets_findings_figures_and_numbers(run, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(ConflictError, match=r"has no active run; call wandb\.init"):
        tdbg.log_to_wandb(run)
    with wandb.init(mode="offline", dir=tmp_path, project="test") as active:
        assert tdbg.log_to_wandb(run, scalars="^loss$") == active.id
        assert active.summary["tdbg/findings/warning"] == 1
        assert active.summary["tdbg/loss"] == pytest.approx(1 / 6)
        assert active.summary["tdbg/run"] == run.info.name
        folder = tmp_path.joinpath(active.dir)
    (table,) = folder.rglob("findings*.table.json")
    assert json.loads(table.read_text())["data"][0][5] == "All is dead."
    assert list(folder.rglob("scalars*.plotly.json"))
