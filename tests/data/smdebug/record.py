"""Record the stores in this folder with smdebug itself: ``python record.py [FOLDER [NAME ...]]``.

It runs in an environment of its own, not in the one of the tests. What it was run with:

    python 3.11, torch==2.13.0, smdebug==1.0.34, numpy==1.26.4, protobuf==3.20.3, pandas==2.3.3,
    requests, psutil, pyinstrument==3.4.2

Beside each store, ``<store>.json`` says what smdebug's own reader makes of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def net():
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 2, 3)
            self.relu = torch.nn.ReLU()
            self.fc = torch.nn.Linear(8, 3)

        def forward(self, x):
            return self.fc(self.relu(self.conv(x)).flatten(1))

    torch.manual_seed(0)
    return Net()


def train(hook, steps, *, evaluate_after=(), close=True) -> None:
    """A few steps of training, with two of evaluation after some of them."""
    import torch
    from smdebug.pytorch import modes

    model = net()
    loss = torch.nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(4, 1, 4, 4), torch.tensor([0, 1, 2, 0])
    for step in range(steps):
        hook.set_mode(modes.TRAIN)
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        hook.save_scalar("accuracy", step / steps)
        if step in evaluate_after:
            hook.set_mode(modes.EVAL)
            with torch.no_grad():
                for _ in range(2):
                    loss(model(x), y)
    if close:
        hook.close()


def pytorch(out: Path) -> None:
    """Everything, raw, in two modes; weights every second step only."""
    import smdebug.pytorch as smd

    hook = smd.Hook(
        str(out),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights", "biases", "gradients", "losses", "relu"],
        include_regex=["fc_output"],
    )
    hook.get_collection("relu").include("relu_(output|input)")
    hook.get_collection("weights").save_config = smd.SaveConfig(save_interval=2)
    train(hook, 6, evaluate_after=(2, 5))


def reductions(out: Path) -> None:
    """Reductions and shapes, no values but of losses."""
    import smdebug.pytorch as smd

    every = smd.ReductionConfig(
        reductions=["min", "max", "mean", "std", "variance", "sum", "prod"],
        abs_reductions=["min", "max", "mean", "std"],
        norms=["l1", "l2"],
        abs_norms=["l1", "l2"],
        save_shape=True,
    )
    hook = smd.Hook(
        str(out),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights", "gradients", "losses"],
        reduction_config=every,
    )
    train(hook, 3)


def shapes(out: Path) -> None:
    """Values and shapes of the same tensors, which smdebug's own reader does not bring together."""
    import smdebug.pytorch as smd

    hook = smd.Hook(
        str(out),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights"],
        reduction_config=smd.ReductionConfig(save_raw_tensor=True, save_shape=True),
    )
    train(hook, 2)


def workers(out: Path) -> None:
    """Two processes of one job that write side by side."""
    port = str(20_000 + os.getpid() % 20_000)
    children = [
        subprocess.Popen([sys.executable, __file__, "--rank", str(rank), port, str(out)]) for rank in (0, 1)
    ]
    assert [child.wait() for child in children] == [0, 0]


def one_worker(rank: int, port: str, out: str) -> None:
    import smdebug.pytorch as smd
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    hook = smd.Hook(
        out,
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["biases", "losses"],
        include_workers="all",
    )
    train(hook, 3)
    dist.barrier()
    dist.destroy_process_group()


def dtypes(out: Path) -> None:
    """One tensor of each type that smdebug's writer takes; its reader knows fewer."""
    from smdebug.core.collection_manager import CollectionManager
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import FileWriter

    names = (
        "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128"
    )
    writer = FileWriter(str(out), "worker_0", step=0)
    for name in names.split():
        values = (np.arange(6).reshape(2, 3) - 2) * (1 + 2j if name.startswith("complex") else 1)
        writer.write_tensor(values.astype(name), name, mode=ModeKeys.TRAIN, mode_step=0)
    writer.write_tensor(np.array(["a", "bé", ""]), "text", mode=ModeKeys.TRAIN, mode_step=0)
    writer.write_tensor(np.float32(7.5), "scalar", mode=ModeKeys.TRAIN, mode_step=0)
    writer.close()
    manager = CollectionManager()
    manager.set_num_workers(1)
    manager.export(str(out), "worker_0_collections.json")
    (out / "training_job_end.ts").touch()


def profiler(out: Path) -> None:
    """A timeline that was closed, and one that is still open."""
    _profiled(out, ("closed", "open"))
    for stats in list(out.rglob("python_stats*")):  # where they are is what is read
        stats.write_bytes(b"")
        if "*" in stats.parent.name:  # no name for a file everywhere
            shutil.rmtree(stats.parent)


def python_profiles(out: Path) -> None:
    """What cProfile saw of a step, without the places of files on the machine."""
    import pstats

    _profiled(out, ("closed",))
    for stats in list(out.rglob("python_stats*")):
        if "*" in stats.parent.name:
            shutil.rmtree(stats.parent)
        else:
            pstats.Stats(str(stats)).strip_dirs().dump_stats(stats)
    shutil.rmtree(out / "framework" / "pevents", ignore_errors=True)


def _profiled(out: Path, names: tuple[str, ...]) -> None:
    config = HERE / "profiler.json"
    config.write_text(
        json.dumps(
            {
                "ProfilingParameters": {
                    "ProfilerEnabled": True,
                    "LocalPath": str(out),
                    "DetailedProfilingConfig": '{"StartStep": 0, "NumSteps": 4}',
                    "PythonProfilingConfig": '{"StartStep": 1, "NumSteps": 1, "ProfilerName": "cProfile"}',
                }
            }
        )
    )
    for name in names:
        subprocess.run(
            [sys.executable, __file__, "--profile", name, str(out)],
            env={**os.environ, "SMPROFILER_CONFIG_PATH": str(config)},
            check=True,
        )
    config.unlink()


def profile(how: str, out: str) -> None:
    import tempfile

    import smdebug.pytorch as smd

    with tempfile.TemporaryDirectory() as folder:
        hook = smd.Hook(folder + "/tensors", include_collections=["losses"])
        train(hook, 4, close=how == "closed")
        if how == "open":  # killed while it trains
            hook.timeline_writer.flush()
            shutil.rmtree(folder)
            os._exit(0)


def described(store: Path) -> dict:
    """What smdebug's reader makes of a store: values as hexadecimal bytes."""
    from smdebug.trials import create_trial

    trial = create_trial(str(store))
    names: dict = {}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        steps: dict = {}
        for step in tensor.steps():
            for worker in tensor.workers(step):
                try:
                    value = np.asarray(tensor.value(step, worker=worker))
                    found = [value.dtype.str, list(value.shape), value.tobytes().hex()]
                except Exception as error:  # its reader knows fewer types than its writer
                    found = [type(error).__name__]
                reduced = tensor.reduction_values(step, worker=worker)
                steps.setdefault(str(step), {})[worker] = {
                    "value": found,
                    "reductions": {f"{'abs_' if a else ''}{n}": float(v) for (n, a), v in reduced.items()},
                }
        names[name] = steps
    return {
        "steps": trial.steps(),
        "modes": {mode.name: trial.steps(mode=mode) for mode in trial.modes()},
        "workers": trial.workers(),
        "collections": {name: trial.tensor_names(collection=name) for name in trial.collections()},
        "tensors": names,
    }


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    only = sys.argv[2:]
    for record in (pytorch, reductions, shapes, workers, dtypes, profiler, python_profiles):
        if only and record.__name__ not in only:
            continue
        out = (target / record.__name__).absolute()
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if record in {pytorch, reductions, shapes}:  # each hook wants a process of its own
            subprocess.run([sys.executable, __file__, "--store", record.__name__, str(out)], check=True)
        else:
            record(out)
        if record not in {profiler, python_profiles}:
            out.with_suffix(".json").write_text(json.dumps(described(out), indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    option, values = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if option == "--rank":
        one_worker(int(values[0]), *values[1:])
    elif option == "--store":
        globals()[values[0]](Path(values[1]))
    elif option == "--describe":
        Path(values[0]).with_suffix(".json").write_text(json.dumps(described(Path(values[0]))))
    elif option == "--profile":
        profile(*values)
    else:
        main()
