"""A convolutional net that waits for its data, and the same one with workers.

Run it: ``python examples/starved_cnn.py``. Each image takes its time to load, as from a slow disk; the
first run loads in the training process, the second takes the advice that the first one gives.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import tdbg_lab as tdbg
from tdbg_lab.views import call_view


class SlowDigits(Dataset):
    """Images that a slow disk holds."""

    def __init__(self, rows: int, delay_s: float) -> None:
        generator = torch.Generator().manual_seed(0)
        self.images = torch.randn(rows, 1, 16, 16, generator=generator)
        self.labels = (self.images.mean((1, 2, 3)) > 0).long()
        self.delay_s = delay_s

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.delay_s)
        return self.images[index], self.labels[index]


def train(store: Path, *, steps: int, workers: int, delay_s: float) -> tdbg.Run:
    """Train for some steps; gives the run."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 144, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = SlowDigits(16 * steps, delay_s)
    loader = DataLoader(
        data, batch_size=16, num_workers=workers, multiprocessing_context="fork" if workers else None
    )
    with tdbg.attach(model, optimizer=optimizer, store=store, profile_steps=(3, 5)) as handle:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    return tdbg.open_run(handle.run_path)


def verdict(run: tdbg.Run) -> str:
    """What the data-loading view says."""
    return str(call_view(run, "data_loading").layout.meta["tdbg"]["caption"])


def main() -> None:
    """Train twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--delay-ms", type=float, default=3.0, help="time to load one image")
    parser.add_argument("--store", type=Path, default=Path("runs"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    how = {"steps": options.steps, "delay_s": options.delay_ms / 1e3}
    first = train(options.store / "starved", workers=0, **how)
    sys.stdout.write(f"starved: {verdict(first)}\n")
    for finding in tdbg.run_rules(first, ["input_bound"]):
        sys.stdout.write(f"found: {finding.message} {finding.advice[0]}\n")
    advised = re.search(r"num_workers=(\d+)", verdict(first))
    workers = int(advised[1]) if advised else 2
    second = train(options.store / "fed", workers=workers, **how)
    sys.stdout.write(f"with {workers} workers: {verdict(second)}\n")
    sys.stdout.write(f"report: {tdbg.report(first, options.store / 'starved-report.html')}\n")


if __name__ == "__main__":
    main()
