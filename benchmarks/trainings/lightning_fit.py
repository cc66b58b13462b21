"""`lightning.Trainer` with the small GPT."""

from __future__ import annotations

from trainings.stopwatch import WARM_UP
from trainings.trainer import Trainer as Training


class Lightning(Training):
    callback = "LightningCallback"

    def __init__(self, arm, folder):
        import logging

        import torch

        torch.manual_seed(0)
        torch.set_num_threads(1)
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        self.module = module()
        rows = torch.randint(0, 256, (2, 64, 64))
        data = torch.utils.data.TensorDataset(rows[0], rows[1])
        self.loader = torch.utils.data.DataLoader(data, batch_size=8)
        super().__init__(arm, folder, self.module)

    def fit(self, steps, own, watch):
        from lightning.pytorch import Trainer

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


def module():
    """The small GPT as a Lightning module."""
    import torch
    from lightning.pytorch import LightningModule
    from small_models import Gpt

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
