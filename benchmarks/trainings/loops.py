"""A loop of one's own around a small GPT, compiled or distributed."""

from __future__ import annotations

import os

from trainings.peers import PEERS, smdebug_hook
from trainings.stopwatch import OURS, WARM_UP, clocks, no_problems


class Loop:
    """A small GPT that trains on; `wrap` compiles or distributes it."""

    def __init__(self, arm, folder, wrap):
        import torch
        from small_models import Gpt

        torch.manual_seed(0)
        torch.set_num_threads(1)
        net = Gpt(vocabulary=256, width=128, depth=2, length=64)
        self.x, self.y = torch.randint(0, 256, (2, 8, 64))
        self.criterion = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
        self.after = self.close = lambda: None
        self.warm = False
        chief = int(os.environ.get("RANK", "0")) == 0
        self.model = wrap(net)
        if arm in OURS:
            self._ours(folder, OURS[arm])
        elif arm in PEERS and chief:
            peer = PEERS[arm](net, folder)
            self.after, self.close = peer.step, peer.close
        elif arm == "smdebug" and chief:
            self.close = smdebug_hook(net, self.criterion, folder)

    def _ours(self, folder, every):
        import tdbg_lab as tdbg

        handle = tdbg.attach(
            self.model,
            optimizer=self.optimizer,
            loss=self.criterion,
            store=folder / "run",
            save_every=every,
            profiler=False,
        )
        self.close = lambda: (handle.detach(), no_problems(handle))

    def block(self, steps):
        """Seconds a step over some steps; the first block warms up before."""
        if not self.warm:
            self._train(WARM_UP - 1)  # the clocks of every block run over whole tens
            self.warm = True
        start = clocks()
        self._train(steps)
        return (clocks() - start) / steps

    def _train(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(self.x).flatten(0, -2), self.y.flatten())
            loss.backward()
            self.optimizer.step()
            self.after()


def compiled(arm, folder):
    """Compiled as a whole by Inductor."""
    import torch

    return Loop(arm, folder, torch.compile)


def distributed(arm, folder):
    """One of several replicas that exchange gradients by gloo."""
    import torch

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo")
    return Loop(arm, folder, torch.nn.parallel.DistributedDataParallel)
