"""Train for a few seconds, whose memory is sampled often: ``leaking.py RUN [keep]``."""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.capture import companions

BATCH_BYTES = 2**21
SAMPLES = 90


def main(path: str, *, keep: bool) -> None:
    start = companions.start_sampler
    companions.start_sampler = lambda run, *, rank=0, **_: start(run, rank=rank, interval_s=0.05)
    torch.set_num_threads(1)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    with tdbg.attach(model, optimizer=optimizer, store=path, rules="none", strict=True) as handle:
        run = tdbg.open_run(handle.run_path)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            optimizer.zero_grad()
            output = model(torch.ones(3, 4))
            batch = np.ones(BATCH_BYTES, np.uint8)
            if keep:
                kept.append(batch)
            output.sum().backward()
            optimizer.step()
            time.sleep(0.02)
            if handle.step % 20 == 0:
                run.refresh()
                if run.samples(metrics=("process_memory_bytes",))["time_ns"].nunique() > SAMPLES:
                    break


if __name__ == "__main__":
    main(sys.argv[1], keep="keep" in sys.argv[2:])
