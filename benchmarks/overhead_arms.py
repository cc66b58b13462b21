"""What is put on a training to be measured: capture of ours, and what its peers offer for the same."""

from __future__ import annotations

import os

import numpy as np

EVERY = {"control": 10, "tdbg-1": 1, "tdbg-watch": 1, "tdbg-10": 10, "tdbg-auto": "auto", "tdbg-never": 10**9}
"""Steps between two that are saved, auto: as chosen; never: only the first is, before the clocks start."""
WATCHED = {"tdbg-watch": {"collections": ["weights", "biases", "gradients"], "config": {"checks": False}}}
"""How an arm captures less."""


def leaves(net):
    return [(name, one) for name, one in net.named_modules() if not list(one.children())]


def arm_tdbg(training, folder, arm):
    import tdbg_lab as tdbg
    from tdbg_lab.stats import cpu

    cpu.warm_up()
    handle = tdbg.attach(
        training.net,
        optimizer=training.optimizer,
        loss=training.criterion,
        store=folder / "run",
        save_every=EVERY[arm],
        profiler=False,
        **WATCHED.get(arm, {}),
    )

    def close():
        handle.detach()
        if handle.problems:
            raise RuntimeError(handle.problems)

    training.close = close
    training.save_every = lambda: handle.save_every


def arm_tensorboard(training, folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)
    step = [0]
    for name, module in leaves(training.net):
        module.register_forward_hook(
            lambda _m, _i, out, name=name: writer.add_histogram(f"activation/{name}", out.detach(), step[0])
        )

    def after():
        for name, value in training.net.named_parameters():
            writer.add_histogram(name, value.detach(), step[0])
            writer.add_histogram(f"gradient/{name}", value.grad, step[0])
        step[0] += 1

    training.after, training.close = after, writer.close


def arm_wandb(training, folder):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder))
    import wandb

    run = wandb.init(project="overhead", dir=str(folder), settings=wandb.Settings(silent=True))
    run.watch(training.net, log="all", log_freq=1)
    training.after = lambda: run.log({"step": 0})

    def close():
        run.unwatch(training.net)
        run.finish()

    training.close = close


def arm_numpy(training, folder):
    rows = (folder / "rows.bin").open("wb")

    def reduce(tensor):
        x = tensor.detach().float().cpu().numpy().ravel()
        facts = [x.min(), x.max(), x.mean(), x.std(), np.abs(x).sum(), np.linalg.norm(x), (x == 0).sum()]
        counts, edges = np.histogram(x, 64)
        rows.write(np.asarray(facts, np.float64).tobytes() + counts.tobytes() + edges.tobytes())

    for _, module in leaves(training.net):
        module.register_forward_hook(lambda _m, _i, out: reduce(out))

    def after():
        for value in training.net.parameters():
            reduce(value)
            reduce(value.grad)

    training.after, training.close = after, rows.close


def arm_smdebug(training, folder):
    """SageMaker Debugger with reductions instead of raw tensors (no histogram)."""
    import smdebug.pytorch as smd

    reductions = smd.ReductionConfig(
        reductions=["min", "max", "mean", "std"], norms=["l1", "l2"], save_raw_tensor=False
    )
    hook = smd.Hook(
        out_dir=str(folder / "smd"),
        save_config=smd.SaveConfig(save_interval=1),
        reduction_config=reductions,
        include_regex=[r"^(?!.*input).*$"],  # integer inputs abort the training
        save_all=False,
    )
    hook.register_module(training.net)
    hook.register_loss(training.criterion)
    training.close = hook.close


def install(arm, training, folder):
    if arm == "control":
        return
    if arm.startswith("tdbg-"):
        arm_tdbg(training, folder, arm)
    else:
        {
            "tensorboard": arm_tensorboard,
            "wandb": arm_wandb,
            "numpy": arm_numpy,
            "smdebug": arm_smdebug,
        }[arm](training, folder)
