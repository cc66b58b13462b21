from __future__ import annotations

import json

import pytest

from tdbg_lab.cli import checks, run


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Jupyter's own folders, empty; nothing of this machine is seen."""
    for name in ("config", "data"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("jupyter_core.paths.jupyter_config_path", lambda: [str(tmp_path / "config")])
    monkeypatch.setattr(
        "jupyter_core.paths.jupyter_path", lambda *parts: [str(tmp_path.joinpath("data", *parts))]
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def enable_server(places):
    folder = places / "config" / "jupyter_server_config.d"
    folder.mkdir()
    (folder / "tdbg_lab.json").write_text('{"ServerApp": {"jpserver_extensions": {"tdbg_lab": true}}}')


def install_lab(places):
    folder = places / "data" / "labextensions" / "tdbg-lab"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": "tdbg-lab", "version": "0.1.0"}))


def test_healthy_installation_exits_0(places, capsys):
    enable_server(places)
    install_lab(places)
    code = run(["doctor"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert "All is well." in out
    assert "lab extension: 0.1.0" in out


def test_missing_extensions_exit_1_and_say_what_to_do(places, capsys):
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "jupyter server extension enable tdbg_lab" in out
    assert "pip install" in out
    assert "2 of " in out


def test_disabled_lab_extension_is_told(places, capsys):
    enable_server(places)
    install_lab(places)
    (places / "config" / "labconfig").mkdir()
    (places / "config" / "labconfig" / "page_config.json").write_text(
        '{"disabledExtensions": {"tdbg-lab": true}}'
    )
    assert run(["doctor"]) == 1
    assert "jupyter labextension enable tdbg-lab" in capsys.readouterr().out


def test_check_that_fails_is_a_finding(monkeypatch):
    monkeypatch.setattr(checks, "version", lambda _name: 1 / 0)
    states = {check.what: check.state for check in checks.examine()}
    assert states["packages"] == "wrong"


@pytest.mark.parametrize(
    ("missing", "state", "words"),
    [("", "ok", "Triton"), ("triton", "note", "pip install triton"), ("compiler", "note", "C compiler")],
)
def test_gpu_is_measured_by_triton_where_that_can_be_and_else_it_is_said(monkeypatch, missing, state, words):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    known = checks.importlib.util.find_spec
    monkeypatch.setattr(checks, "_gpu", lambda: checks.Check("gpu", "ok", "one"))
    monkeypatch.setattr(
        checks.importlib.util, "find_spec", lambda name: None if name == missing else known(name)
    )
    monkeypatch.setattr(checks.shutil, "which", lambda _: None if missing == "compiler" else "/usr/bin/gcc")
    check = checks._gpu_kernels()
    assert check.state == state
    assert words in f"{check.found} {check.advice}"


def test_without_a_gpu_nothing_is_asked_for(monkeypatch):
    monkeypatch.setattr(checks, "_gpu", lambda: checks.Check("gpu", "note", "none seen"))
    assert checks._gpu_kernels().state == "ok"
