"""`lightning.Trainer` with the small GPT."""

from __future__ import annotations

from trainings.peers import PEERS
from trainings.stopwatch import OURS, WARM_UP, Stopwatch, no_problems


class Lightning:
    """A Trainer anew for each block, the same module."""

    def __init__(self, arm, folder):
        import logging

        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        self.arm, self.folder = arm, folder
        self.module = module()
        rows = torch.randint(0, 256, (2, 64, 64))
        data = torch.utils.data.TensorDataset(rows[0], rows[1])
        self.loader = torch.utils.data.DataLoader(data, batch_size=8)
        self.peer = PEERS[arm](self.module, folder) if arm in PEERS else None

    def block(self, steps):
        """Seconds a step, after the warm-up."""
        from lightning.pytorch import Trainer

        own = self._own()
        watch = Stopwatch(steps)
        trainer = Trainer(
            max_steps=WARM_UP + steps,
            accelerator="cpu",
            callbacks=[*own, watching(watch, self.peer)],
            enable_model_summary=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            logger=False,
        )
        trainer.fit(self.module, self.loader)
        for callback in own:
            no_problems(callback.handle)
        return watch.spent

    def _own(self):
        import tdbg_lab as tdbg

        if self.arm not in OURS:
            return []
        every = OURS[self.arm]
        return [tdbg.LightningCallback(store=self.folder / "run", save_every=every, profiler=False)]

    def close(self):
        if self.peer is not None:
            self.peer.close()


def module():
    """The small GPT as a Lightning module."""
    import torch
    from lightning.pytorch import LightningModule
    from overhead import Gpt

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Gpt(vocabulary=256, width=128, depth=2, length=64)
            self.criterion = torch.nn.CrossEntropyLoss()

        def training_step(self, batch, _index):
            loss = self.criterion(self.net(batch[0]).flatten(0, -2), batch[1].flatten())
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-4)

    return Module()


def watching(watch, peer):
    """A callback that tells of every step."""
    from lightning.pytorch import Callback

    class Watching(Callback):
        def on_train_batch_end(self, *args):
            if peer is not None:
                peer.step()
            watch.step()

    return Watching()
