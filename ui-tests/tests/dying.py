"""A training whose ReLU dies in mid-run, and that goes on until it is killed. One of its rules knows a fix."""

import sys
import time
from dataclasses import dataclass

import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.records import Finding, Kind, Severity
from tdbg_lab.rules import Needs
from tdbg_lab.rules.view import RunView

DIES_AT = 100


@dataclass(frozen=True, kw_only=True)
class TooFast(tdbg.Rule):
    """The learning rate is above what this network bears."""

    title = "Too fast"
    limit: float = 1e-3
    """Highest learning rate."""

    def needs(self) -> Needs:
        """Look at what the optimizer does."""
        return Needs(kinds=(Kind.OPTIMIZER,))

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the learning rate with the limit."""
        rate = run.value("optimizer/lr/0")
        if rate is None or rate <= self.limit:
            return None
        return self.finding(
            step,
            f"The learning rate is {rate:g}, above {self.limit:g}.",
            severity=Severity.NOTICE,
            tensor="optimizer/lr/0",
            evidence={"learning_rate": rate},
            fix={"setting": "learning_rate", "factor": 0.1},
        )


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
with tdbg.attach(
    model, optimizer=optimizer, loss=criterion, store=sys.argv[1], save_every=2, rules=["default", TooFast()]
) as handle:
    while True:
        values = torch.randn(64, 16)
        if handle.step == DIES_AT:
            with torch.no_grad():
                model[0].bias.fill_(-1000.0)
        optimizer.zero_grad()
        criterion(model(values), (values.sum(1) > 0).long()).backward()
        optimizer.step()
        time.sleep(0.005)  # as long as a small step takes
