"""Other libraries that record what a PyTorch model does, each as its documentation shows."""

from __future__ import annotations

import os


def wandb_run(folder):
    """A run of Weights & Biases that stays in a folder."""
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder))
    import wandb

    return wandb.init(project="frameworks", dir=str(folder), settings=wandb.Settings(silent=True))


class Histograms:
    """TensorBoard histograms of all weights and gradients, every step."""

    def __init__(self, net, folder):
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(folder)
        self.close = self.writer.close
        for name, parameter in net.named_parameters():
            parameter.register_post_accumulate_grad_hook(self._recorder(name))

    def _recorder(self, name):
        def record(parameter):
            self.writer.add_histogram(name, parameter.detach(), 0)
            self.writer.add_histogram(f"gradient/{name}", parameter.grad, 0)

        return record

    def step(self):
        """All is done in the backward pass: some trainers clear gradients before they tell of a step."""


class Watched:
    """``wandb.watch``, every step."""

    def __init__(self, net, folder):
        self.run = wandb_run(folder)
        self.run.watch(net, log="all", log_freq=1)
        self.close = self.run.finish

    def step(self):
        self.run.log({"step": 0})


PEERS = {"tensorboard": Histograms, "wandb": Watched}


def smdebug_hook(net, criterion, folder):
    """smdebug's hook on a model and its loss; what closes it comes back."""
    import smdebug.pytorch as smd

    hook = smd.Hook(
        str(folder / "smd"),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights", "biases", "gradients", "losses"],
        reduction_config=smd.ReductionConfig(reductions=["min", "max", "mean", "std"], norms=["l1", "l2"]),
    )
    hook.register_module(net)
    hook.register_loss(criterion)
    return hook.close
