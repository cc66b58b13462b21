from __future__ import annotations

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.notebook.arguments import COMMANDS, help_text, parse


def test_parse_attach_reads_every_option():
    parsed = parse(
        "attach --model gen,disc --model head --optimizer opt --loss criterion --store 'runs/my first' "
        "--save-every 5 --rules default --no-profiler"
    )
    assert parsed.command.name == "attach"
    assert parsed.values["model"] == ["gen", "disc", "head"]
    assert parsed.values["store"] == "runs/my first"
    assert parsed.values["save_every"] == 5
    assert parsed.values["rules"] == ["default"]
    assert parsed.values["no_profiler"] is True
    assert parsed.values["name"] is None


def test_parse_attach_takes_a_distance_that_is_chosen():
    assert parse("attach --model net --save-every auto").values["save_every"] == "auto"


def test_parse_show_hands_parameters_of_the_view_on():
    parsed = parse("show histograms --tensor conv1 --mode=eval --n-out 50 --linear")
    assert parsed.values["view"] == "histograms"
    assert parsed.values["tensor"] == "conv1"
    assert parsed.more == {"mode": "eval", "n_out": "50", "linear": True}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("atach", "There is no command '%tdbg atach'. Did you mean 'attach'?"),
        ("attach --modle m", "'%tdbg attach' has no option '--modle'. Did you mean '--model'?"),
        ("attach --save-every often", "--save-every takes a whole number or auto, not 'often'."),
        ("attach --model", "--model needs a value."),
        ("attach model", "'%tdbg attach' does not know what to do with 'model': options start with --."),
        ("stop --reason 'no end", "There is a quotation mark without its partner."),
        ("show histogram conv1", "'conv1' does not belong to an option: write --name value."),
    ],
)
def test_parse_says_what_is_wrong_in_one_sentence(line, sentence):
    with pytest.raises(ConfigError) as caught:
        parse(line)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("line", ["", "help", "--help", "-h"])
def test_parse_turns_nothing_and_help_into_help(line):
    assert parse(line).command.name == "help"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_explains_every_option_with_an_example(command):
    text = help_text(command)
    assert all(option.name in text and option.help in text for option in command.options)
    assert parse(command.example.removeprefix("%tdbg ")).command is command


def test_help_of_one_command_is_reached_from_its_own_line():
    parsed = parse("attach --model m --help")
    assert (parsed.command.name, parsed.values["command"]) == ("help", "attach")
