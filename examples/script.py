"""Watch a plain training script: run it, and open the run in JupyterLab's Tensor Debugger.

    python script.py --epochs 20

The panel finds the run under the directory JupyterLab was started in. Nothing else is needed: the script and
the panel meet in the run directory.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

import tdbg_lab as tdbg


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--store", default="runs/script")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    # As a context manager the handle detaches by itself, also when the training raises.
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=options.store, save_every=5, rules="default"
    ) as handle:
        for epoch in range(options.epochs):
            for batch in torch.randperm(len(images)).split(32):
                optimizer.zero_grad()
                loss = criterion(model(images[batch]), labels[batch])
                loss.backward()
                optimizer.step()
            handle.log(epoch=epoch)

    run = tdbg.open_run(handle.run_path)
    losses = run.scalars("loss/CrossEntropyLoss").values
    print(f"{run.path}: {run.status}, loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    for finding in run.findings():
        print(f"{finding.severity}: {finding.message}")


if __name__ == "__main__":
    main()
