"""Actions against real servers, processes and run directories."""

from __future__ import annotations

import email
import json
import math
import os
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from tdbg_lab.actions import (
    ActionContext,
    ApplyFix,
    ChangeSetting,
    CommandError,
    Email,
    Notify,
    NotifyError,
    RunCallable,
    RunCommand,
    StopTraining,
    Webhook,
)
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Finding, Severity
from tdbg_lab.store import create_run, pending, read_setting_records

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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def tls(tmp_path: Path) -> tuple[Any, ssl.SSLContext]:
    """A patch by which clients trust a certificate made for this test, and the server's context with it."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate, key)
    patch = pytest.MonkeyPatch.context()
    return trusting(patch, certificate), server


@contextmanager
def trusting(patch: Any, certificate: Path) -> Iterator[None]:
    with patch as monkeypatch:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        yield


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    port = free_port()
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
            text = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append(json.loads(text, parse_constant=pytest.fail))
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
    Notify(url).perform(FINDING, context)
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


@pytest.mark.parametrize("urls", [(), ("no such scheme",), ("mailtos://",)])
def test_notification_without_a_usable_url_is_a_wrong_setting_at_once(urls) -> None:
    with pytest.raises(ConfigError, match=r"urls|URL 1"):
        Notify(urls)


SERVICES = {
    "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general": "Slack",
    "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ": "Slack",
    "workflows://prod-00.westus.logic.azure.com:443/643e69f83c8944/4g0aiBsdGaZKlI": "Power Automate",
    f"twilio://AC{'a' * 32}:{'b' * 32}@+15551234567/+15557654321": "Twilio",
    "sns://AKIA1234567890123456/secretsecret/us-east-1/+15551234567": "AWS Simple Notification",
    "discord://123456789/abcdef": "Discord",
}


@pytest.mark.parametrize("url", SERVICES)
def test_url_of_a_service_is_understood_and_never_shown(url: str) -> None:
    import apprise

    action = Notify(url)
    assert SERVICES[url] in str(apprise.Apprise.instantiate(url).service_name)
    assert repr(action) == repr(Notify("json://localhost"))


def test_short_mail_is_received_by_a_real_server(mailbox, context: ActionContext) -> None:
    box, port = mailbox
    people = ("me@example.org", "you@example.org")
    Email(to=people, sender="lab@example.org", server=f"127.0.0.1:{port}", security="none").perform(
        FINDING, context
    )
    ((to, message),) = box.messages
    assert to == list(people)
    assert message["From"] == "lab@example.org"
    assert message["Subject"] == "[critical] dead_relu in my run Bcc: other@example.org"
    assert message["Bcc"] is None
    assert FINDING.message in text_of(message)


def test_mail_with_a_password_goes_over_tls_to_a_server_that_asks_for_it(context: ActionContext, tls) -> None:
    client, server = tls
    box = Mailbox()
    passwords: list[bytes] = []

    def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, login: Any) -> AuthResult:
        passwords.append(login.password)
        return AuthResult(success=login.password == b"s3cret", handled=False)

    controller = Controller(
        box,
        hostname="localhost",
        port=free_port(),
        tls_context=server,
        authenticator=check,
        auth_required=True,
    )
    controller.start()
    try:
        with client:
            given = {"to": "me@example.org", "server": f"localhost:{controller.port}", "user": "me"}
            Email(password="s3cret", **given).perform(FINDING, context)
            with pytest.raises(NotifyError, match="refused the user name or password") as error:
                Email(password="wr0ng", **given).perform(FINDING, context)
    finally:
        controller.stop()
    assert passwords[0] == b"s3cret"
    assert set(passwords[1:]) == {b"wr0ng"}
    assert len(box.messages) == 1
    assert "wr0ng" not in f"{error.value} {Email(password='wr0ng', **given)!r}"


def test_mail_to_nobody_there_says_so(context: ActionContext) -> None:
    with pytest.raises(NotifyError, match="could not be sent: ConnectionRefusedError"):
        Email(to="me@example.org", server=f"127.0.0.1:{free_port()}", security="none").perform(
            FINDING, context
        )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"to": "me"}, "'me' is not an e-mail address"),
        ({"to": "me@example.org\nBcc: all@example.org"}, "is not an e-mail address"),
        ({"to": ()}, "no one to go to"),
        ({"to": None}, "to of Email is None; expected an address, or several"),
        ({"to": "me@example.org", "server": "http://host"}, "expected a host, or host:port"),
        ({"to": "me@example.org", "server": "host:99999"}, "expected a host, or host:port"),
        ({"to": "me@example.org", "server": None}, "server of Email is None; expected a host"),
        ({"to": "me@example.org", "user": 5}, "user of Email is not a text"),
        ({"to": "me@example.org", "password": None}, "password of Email is not a text"),
        ({"to": "me@example.org", "security": ["tls"]}, "expected starttls, tls, none"),
        ({"to": "me@example.org", "security": "none", "password": "x"}, "in the clear"),
        ({"to": "me@example.org", "cooldown_s": -1}, "cooldown_s of Email is -1; expected seconds"),
        ({"to": "me@example.org", "when": "critical"}, "when of Email is a str; expected a Pattern"),
    ],
)
def test_mail_that_cannot_be_sent_is_a_wrong_setting_at_once(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Email(**{"server": "localhost", **given})
    assert sentence in str(error.value)


def test_short_webhook_gets_the_whole_finding(webhook, context: ActionContext) -> None:
    posted, port, _ = webhook
    Webhook(f"http://127.0.0.1:{port}/hook?token=secret", headers={"X-Key": "k"}).perform(FINDING, context)
    (value,) = posted
    assert value["finding"]["rule"] == "dead_relu"
    assert value["finding"]["evidence"] == dict(FINDING.evidence)
    assert value["run"]["path"] == str(context.run_path)


@pytest.mark.parametrize("status", [302, 404, 500])
def test_webhook_that_does_not_accept_is_an_error_without_the_url(webhook, status, context) -> None:
    _, port, answer = webhook
    answer[0] = status
    action = Webhook(f"http://127.0.0.1:{port}/hook?token=secret")
    with pytest.raises(NotifyError, match=f"The webhook answered {status}") as error:
        action.perform(FINDING, context)
    assert "secret" not in f"{error.value} {action!r}"


def test_webhook_gets_json_also_of_numbers_that_json_does_not_know(webhook, context: ActionContext) -> None:
    posted, port, _ = webhook
    finding = replace(FINDING, evidence={"loss": math.nan, "least": -math.inf, "share": 0.5})
    Webhook(f"http://127.0.0.1:{port}/hook").perform(finding, context)
    assert posted[0]["finding"]["evidence"] == {"loss": "NaN", "least": "-Infinity", "share": 0.5}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "begins with http://"),
        ("example.org", "begins with http://"),
        ("", "begins with http://"),
        (None, "is of type NoneType; expected text"),
        ("http://[::1", "IPv6"),
        ("http://host:99999/hook?secret", "has a port that is no number from 0 to 65535"),
        ("http://host:http/hook", "has a port that is no number"),
        ("https:///hook", "names no server"),
    ],
)
def test_webhook_to_what_is_no_web_address_is_a_wrong_setting(url: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        Webhook(url)
    assert "secret" not in str(error.value)


def test_headers_of_a_webhook_are_names_with_values() -> None:
    headers: Any = "Authorization: Bearer x"
    with pytest.raises(ConfigError, match="headers of Webhook is a str") as error:
        Webhook("https://example.org", headers=headers)
    assert "Bearer" not in str(error.value)


def test_change_of_a_setting_is_asked_for_with_the_finding_behind_it(context: ActionContext) -> None:
    finding = replace(FINDING, id="f1")
    ChangeSetting(factor=0.1).perform(finding, context)
    (record,) = read_setting_records(context.run_path)
    assert (str(record.change), record.by, record.state) == (
        "learning_rate x 0.1",
        "rule dead_relu",
        "pending",
    )
    assert pending(context.run_path)[0].arguments["finding"] == "f1"
    with pytest.raises(ConfigError, match="either a value or a factor"):
        ChangeSetting()


def test_fix_is_asked_for_when_the_finding_is_sure_enough(context: ActionContext) -> None:
    fix = {"setting": "clip_norm", "value": 1.0}
    ApplyFix().perform(FINDING, context)
    ApplyFix().perform(replace(FINDING, severity=Severity.WARNING, fix=fix), context)
    assert read_setting_records(context.run_path) == []
    ApplyFix().perform(replace(FINDING, fix=fix), context)
    assert [str(one.change) for one in read_setting_records(context.run_path)] == ["clip_norm = 1"]


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


def test_command_gets_evidence_as_json_whatever_the_numbers_are(context: ActionContext) -> None:
    out = context.run_path / "evidence.json"
    finding = replace(FINDING, evidence={"loss": math.nan})
    RunCommand(command=f'printf "%s" "$TDBG_EVIDENCE" > {out}').perform(finding, context)
    assert out.read_text() == '{"loss": "NaN"}'


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RunCommand(command=None), "command of RunCommand is 'None'; expected a line for the shell"),
        (lambda: RunCommand(command=" "), "command of RunCommand is ' '"),
        (lambda: RunCallable(function="notify"), "function of RunCallable is a str; expected a function"),
        (lambda: Notify(None), "urls of Notify is None; expected a URL, or several"),
    ],
)
def test_action_without_what_it_is_to_do_is_a_wrong_setting_at_once(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


@pytest.mark.skipif(os.name == "nt", reason="names of files are Unicode there")
def test_run_whose_name_is_no_utf8_is_told_all_the_same(mailbox, context: ActionContext) -> None:
    path = context.run_path / os.fsdecode(b"caf\xe9")
    path.mkdir()
    named = ActionContext(path)
    RunCommand(command='cat > "$TDBG_RUN/message.txt"').perform(FINDING, named)
    assert r"Run: caf\udce9 (" in (path / "message.txt").read_text()
    box, port = mailbox
    Email(to="me@example.org", server=f"127.0.0.1:{port}", security="none").perform(FINDING, named)
    assert len(box.messages) == 1


def test_command_that_fails_is_told_with_the_end_of_its_output(context: ActionContext) -> None:
    with pytest.raises(CommandError, match="ended with 3: no printer"):
        RunCommand(command="echo no printer >&2; exit 3").perform(FINDING, context)


@pytest.mark.parametrize("groups", [True, False])
def test_command_that_takes_too_long_is_ended_with_what_it_started(
    context: ActionContext, monkeypatch: pytest.MonkeyPatch, *, groups: bool
) -> None:
    if not groups:  # as on Windows
        monkeypatch.delattr(os, "killpg")
    pid = context.run_path / "pid"
    command = f"sleep 60 & echo $! > {pid}; wait"
    with pytest.raises(CommandError, match="longer than 1 s"):
        RunCommand(command=command, timeout_s=1.0).perform(FINDING, context)
    child = psutil.Process(int(pid.read_text())) if psutil.pid_exists(int(pid.read_text())) else None
    assert child is None or child.status() == psutil.STATUS_ZOMBIE or child.wait(10) is None
