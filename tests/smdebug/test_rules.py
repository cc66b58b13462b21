"""Rules over trials: required tensors, invocation, actions."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tdbg_lab.smdebug.pytorch as smd  # noqa: E402
from tdbg_lab.errors import TrainingStopped  # noqa: E402
from tdbg_lab.run import open_run  # noqa: E402
from tdbg_lab.smdebug.exceptions import (  # noqa: E402
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
)
from tdbg_lab.smdebug.rules import Rule, invoke_rule  # noqa: E402
from tdbg_lab.smdebug.rules.action import SMS, ActionList, Email, StopTraining  # noqa: E402
from tdbg_lab.smdebug.trials import create_trial  # noqa: E402
from tdbg_lab.store import requests  # noqa: E402


class GradientAbove(Rule):
    def __init__(self, base_trial, threshold=0.0, action_str="", other_trials=None):
        super().__init__(base_trial, action_str=action_str, other_trials=other_trials)
        self.threshold = float(threshold)
        self.seen = []

    def set_required_tensors(self, step):
        self.req_tensors.add("^gradient", [step], should_match_regex=True)

    def invoke_at_step(self, step):
        self.seen.append(step)
        return any(
            tensor.reduction_value(step, "mean", abs=True) > self.threshold
            for tensor in self.req_tensors.get()
        )


@pytest.fixture
def trial(net, train, tmp_path):
    hook = smd.Hook(
        tmp_path / "run",
        include_collections=["gradients"],
        save_config=smd.SaveConfig(save_interval=2),
        reduction_config=smd.ReductionConfig(abs_reductions=["mean"]),
    )
    hook.register_module(net)
    train(net, nn.CrossEntropyLoss(), 5)
    hook.close()
    return create_trial(tmp_path / "run")


def test_rule_is_checked_at_every_saved_step_until_training_has_ended(trial):
    rule = GradientAbove(trial, threshold=1e9)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.seen == [0, 2, 4]


def test_rule_that_finds_something_goes_on_unless_told_otherwise(trial):
    rule = GradientAbove(trial)
    invoke_rule(rule, start_step=1, end_step=5)
    assert rule.seen == [2, 4]
    with pytest.raises(
        RuleEvaluationConditionMet, match="Rule GradientAbove met its condition at step 2"
    ) as met:
        invoke_rule(rule, start_step=1, raise_eval_cond=True)
    assert (met.value.rule_name, met.value.step, met.value.end_of_rule) == ("GradientAbove", 2, False)


def test_rule_that_says_it_is_done_ends_the_invocation(trial):
    class Once(GradientAbove):
        def invoke_at_step(self, step):
            raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)

    with pytest.raises(RuleEvaluationConditionMet):
        invoke_rule(Once(trial))


def test_missing_tensor_passes_over_the_step(trial):
    class Missing(GradientAbove):
        def invoke_at_step(self, step):
            super().invoke_at_step(step)
            return self.base_trial.tensor("nothing") is not None

    rule = Missing(trial)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.seen == [0, 2, 4]


def test_unsaved_step_is_told_by_invoke(trial):
    with pytest.raises(StepUnavailable):
        GradientAbove(trial).invoke(1)


def test_required_tensors_of_several_trials(trial):
    rule = GradientAbove(trial, other_trials=[trial])
    rule.req_tensors.add("gradient/Net_fc1.weight", steps=[0, 2, 2])
    assert list(rule.req_tensors.get_names()) == ["gradient/Net_fc1.weight"]
    assert rule.req_tensors.get_tensor_steps("gradient/Net_fc1.weight") == [0, 2]
    assert [tensor.name for tensor in rule.req_tensors.get(trial)] == ["gradient/Net_fc1.weight"]
    rule.req_tensors.fetch()
    rule.req_tensors.clear()
    assert not rule.req_tensors.get_names()
    with pytest.raises(TensorUnavailable):
        rule.req_tensors.add("nothing", [0])


def test_rule_needs_a_trial_and_a_check(trial):
    with pytest.raises(SMDebugTypeError, match="base_trial is None"):
        GradientAbove(None)
    with pytest.raises(TypeError, match="abstract"):
        Rule(trial, "")


@pytest.mark.parametrize(
    ("action", "sentence"),
    [("not json", "is no JSON"), ('{"name": "dance"}', "is no action"), ('["stoptraining"]', "is no action")],
)
def test_wrong_action_is_told(trial, action, sentence):
    with pytest.raises(SMDebugValueError, match=sentence):
        GradientAbove(trial, action_str=action)


def test_stop_training_stops_the_hooks_training(net, train, tmp_path):
    hook = smd.Hook(
        tmp_path / "run", include_collections=["gradients"], save_config=smd.SaveConfig(save_interval=1)
    )
    hook.register_module(net)

    def check(step, _loss):
        if step == 1:
            hook._recording._recorder.flush_waiting()
            rule = GradientAbove(create_trial(tmp_path / "run"), action_str='{"name": "StopTraining"}')
            with pytest.raises(RuleEvaluationConditionMet):
                rule.invoke(0)
            hook._recording._control._next_s = 0.0  # requests are looked for every 0.2 s

    with pytest.raises(TrainingStopped, match="Rule GradientAbove met its condition at step 0"):
        train(net, nn.CrossEntropyLoss(), 20, after=check)
    assert open_run(tmp_path / "run").status == "stopped"


def test_email_goes_through_apprise(trial, monkeypatch):
    received = []

    class Inbox(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Inbox)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("TDBG_SMS_URL", f"json://127.0.0.1:{server.server_port}/{{endpoint}}")
    actions = ActionList(Email(f"json://127.0.0.1:{server.server_port}/"), SMS("+15550100"))
    with pytest.raises(RuleEvaluationConditionMet):
        GradientAbove(trial, action_str=actions).invoke(2)
    server.shutdown()
    server.server_close()
    assert len(received) == 2
    assert "met its condition at step 2" in received[0]["message"]


def test_mere_address_is_told_once_and_fails_nothing(trial, caplog):
    rule = GradientAbove(trial, action_str='{"name": "email", "endpoint": "Me@example.org"}')
    assert "cannot send email to a mere address" in caplog.text
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(2)


def test_actions_serialize_as_the_predecessor_wrote_them():
    assert ActionList(StopTraining(), Email("a@b")).serialize() == [
        {"name": "stoptraining"},
        {"name": "email", "endpoint": "a@b"},
    ]


def test_action_that_fails_keeps_no_other_from_being_done(trial, tmp_path, caplog):
    actions = [{"name": "email", "endpoint": "nonsense://x"}, {"name": "stoptraining"}]
    with pytest.raises(RuleEvaluationConditionMet):
        GradientAbove(trial, action_str=json.dumps(actions)).invoke(2)
    assert "An action of rule GradientAbove failed" in caplog.text
    assert [one.kind for one in requests(tmp_path / "run")] == ["stop"]
