"""Actions against real servers, processes and run directories."""

from __future__ import annotations

import email
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.controller import Controller

from tdbg_lab.actions import (
    ActionContext,
    CommandError,
    Notify,
    NotifyError,
    RunCallable,
    RunCommand,
    StopTraining,
)
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Severity
from tdbg_lab.store import create_run, pending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FINDING = Finding(
    rule="dead_relu",
    severity=Severity.CRITICAL,
    step_first=85,
    step_last=90,
    message="64 of 64 units are dead; `echo hacked` $(touch hacked)",
    tensor="activation/relu1",
    evidence={"dead_units_percent": 100.0, "layers": "activation/relu1"},
    advice=("Lower the learning rate.",),
)


@pytest.fixture
def context(tmp_path: Path) -> ActionContext:
    return ActionContext(create_run(tmp_path / "run").path, "my run\r\nBcc: other@example.org")


class Mailbox:
    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.messages.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    yield box, port
    controller.stop()


@pytest.fixture
def webhook() -> Iterator[tuple[list[dict[str, Any]], int, list[int]]]:
    """What was posted, the port, and the status to answer with."""
    posted: list[dict[str, Any]] = []
    status = [200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield posted, server.server_port, status
    server.shutdown()
    thread.join()
    server.server_close()


def text_of(message: Any) -> str:
    part = next(part for part in message.walk() if part.get_content_type() == "text/plain")
    return part.get_payload(decode=True).decode()


def test_mail_is_received_by_a_real_server(mailbox, context: ActionContext) -> None:
    box, port = mailbox
    url = f"mailto://127.0.0.1:{port}?from=tdbg@example.org&to=me@example.org&mode=insecure"
    Notify(urls=url).perform(FINDING, context)
    ((to, message),) = box.messages
    assert to == ["me@example.org"]
    assert "[critical] dead_relu in my run" in str(
        email.header.make_header(email.header.decode_header(message["Subject"]))
    )
    assert message["Bcc"] is None
    text = text_of(message)
    assert FINDING.message in text
    assert "dead_units_percent: 100" in text
    assert "Lower the learning rate." in text


def test_webhook_is_received_by_a_real_server(webhook, context: ActionContext) -> None:
    posted, port, _ = webhook
    Notify(urls=[f"json://127.0.0.1:{port}/hook"]).perform(FINDING, context)
    (value,) = posted
    assert value["type"] == "failure"
    assert FINDING.message in value["message"]


def test_notification_that_is_refused_is_an_error_without_the_url(webhook, context: ActionContext) -> None:
    _, port, status = webhook
    status[0] = 500
    with pytest.raises(NotifyError) as error:
        Notify(urls=[f"json://user:secret@127.0.0.1:{port}/"]).perform(FINDING, context)
    assert "secret" not in str(error.value)
    assert "secret" not in repr(Notify(urls=["json://user:secret@localhost"]))


@pytest.mark.parametrize("urls", [(), ("no such scheme",)])
def test_notification_without_a_usable_url_is_a_wrong_setting(urls, context: ActionContext) -> None:
    with pytest.raises(ConfigError, match=r"urls|URL 1"):
        Notify(urls=urls).perform(FINDING, context)


def test_stop_asks_the_training_process(context: ActionContext) -> None:
    StopTraining().perform(FINDING, context)
    (asked,) = pending(context.run_path)
    assert (asked.kind, asked.by, asked.reason) == ("stop", "rule dead_relu", FINDING.message)


def test_callable_gets_finding_and_context(context: ActionContext) -> None:
    seen: list[Any] = []
    RunCallable(function=lambda *given: seen.append(given)).perform(FINDING, context)
    assert seen == [(FINDING, context)]


def test_command_gets_the_finding_by_environment_and_input_only(context: ActionContext) -> None:
    out = context.run_path / "out.txt"
    command = f'printf "%s|%s|%s\\n" "$TDBG_RULE" "$TDBG_STEP" "$TDBG_MESSAGE" > {out}; cat >> {out}'
    RunCommand(command=command).perform(FINDING, context)
    first, *rest = out.read_text().splitlines()
    assert first == f"dead_relu|90|{FINDING.message}"
    assert "- Lower the learning rate." in rest
    assert not (context.run_path / "hacked").exists()


def test_command_that_fails_is_told_with_the_end_of_its_output(context: ActionContext) -> None:
    with pytest.raises(CommandError, match="ended with 3: no printer"):
        RunCommand(command="echo no printer >&2; exit 3").perform(FINDING, context)


def test_command_that_takes_too_long_is_ended(context: ActionContext) -> None:
    with pytest.raises(CommandError, match=r"longer than 0.2 s"):
        RunCommand(command="sleep 30", timeout_s=0.2).perform(FINDING, context)
