from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%tdbg att", ["attach"]),
        ("%tdbg s", ["status", "show", "set", "stop"]),
        ("handle = %tdbg det", ["detach"]),
        ("%tdbg attach --mod", ["--model"]),
        ("%tdbg help sho", ["show"]),
        ("%%tdbg --opt", ["--optimizer"]),
        ("%tdbg attach --if-exists r", ["resume"]),
        ("%tdbg attach --save-every ", ["auto"]),
        ("%tdbg show histo", ["histogram"]),
    ],
)
def test_completion_offers_commands_options_and_values(complete, line, offered):
    assert complete(line) == offered


def test_completion_offers_variables_that_look_right_for_the_option(shell, complete):
    shell.user_ns |= {
        "model": SimpleNamespace(named_parameters=None),
        "opt": SimpleNamespace(param_groups=[]),
        "size": 3,
    }
    assert complete("%tdbg attach --model ") == ["model"]
    assert complete("%tdbg attach --model model --optimizer ") == ["opt"]


def test_completion_offers_every_variable_when_none_looks_right(shell, complete):
    shell.user_ns["net"] = object()
    assert "net" in complete("%tdbg attach --model n")


def test_completion_offers_tensors_of_the_newest_run(complete, training):
    offered = complete("%tdbg show histograms --tensor activation/")
    assert offered == [f"activation/layer{i}" for i in range(3)]


def test_completion_finds_a_tensor_by_a_part_of_its_name(complete, training):
    assert "gradient/layer1.weight" in complete("%tdbg show histograms --tensor layer1")


def test_completion_offers_tensors_of_the_run_on_the_line(complete, training):
    assert complete("%tdbg show --run runs/fake --tensor optimizer/lr") == ["optimizer/lr/0"]


def test_completion_offers_runs_and_rules(complete, training):
    assert complete("%tdbg stop --run run") == ["runs/fake"]
    assert complete("%tdbg show runs --others runs/one,run") == ["runs/fake"]
    assert complete("%tdbg show compare --other ") == ["runs/fake"]
    assert "dead_relu" in complete("%tdbg attach --rules default,dead")


def test_completion_offers_parameters_of_the_view_on_the_line(complete, training):
    offered = complete("%tdbg show histogram --")
    assert {"--tensor", "--run", "--mode"} <= set(offered)
    assert complete("%tdbg show histogram --mode ev") == ["eval"]


def test_completion_does_not_offer_an_option_twice(complete):
    offered = complete("%tdbg attach --store runs/a --model m --")
    assert "--store" not in offered
    assert "--model" in offered


@pytest.mark.parametrize("line", ["%tdbg nonsense --", "%tdbg show --run nowhere --tensor ", "%tdbg show 'x"])
def test_completion_stays_silent_when_there_is_nothing_to_offer(complete, line):
    assert not [each for each in complete(line) if each.startswith("--")]


def test_completion_leaves_other_lines_alone(shell, complete):
    shell.user_ns["tdbg_value"] = 1
    assert "tdbg_value" in complete("tdbg_v")
