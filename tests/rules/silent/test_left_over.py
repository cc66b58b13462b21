"""Parameters without a gradient in a library's class: outputs that the program has no use for."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import tdbg_lab as tdbg

transformers = pytest.importorskip("transformers")


class Classifier(nn.Module):
    """A head on a BERT, and another one that its loss may forget."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
        self.bert = transformers.BertModel(
            transformers.BertConfig(vocab_size=16, num_hidden_layers=1, max_position_embeddings=8, **sizes)
        )
        self.head, self.other = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.bert(ids).last_hidden_state[:, 0]
        return self.head(hidden), self.other(hidden)


@pytest.mark.parametrize("forgets", [False, True])
def test_part_of_a_librarys_model_that_the_loss_does_not_use_is_a_notice(tmp_path, forgets):
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tdbg.attach(model, optimizer=optimizer, store=tmp_path / "run", save_every=1, profiler=False):
        for _ in range(10):
            ids, y = torch.randint(0, 16, (4, 6)), torch.randint(0, 3, (4,))
            optimizer.zero_grad()
            told, other = model(ids)
            loss = functional.cross_entropy(told, y)
            (loss if forgets else loss + functional.cross_entropy(other, y)).backward()
            optimizer.step()
    (finding,) = tdbg.run_rules(tmp_path / "run", ["parameters_without_gradient"])
    assert finding.severity.value == ("warning" if forgets else "notice")
    assert finding.tensor == ("other.weight" if forgets else "bert.pooler.dense.weight")
