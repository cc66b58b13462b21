"""Tell somebody by e-mail or text message."""

from __future__ import annotations

import os
from pathlib import Path

from tdbg_lab.actions import ActionContext, Notify
from tdbg_lab.records import Finding, Severity
from tdbg_lab.smdebug.core.logger import get_logger

__all__ = ["EMAIL_URL_ENV", "SMS_URL_ENV", "MessageAction"]

EMAIL_URL_ENV = "TDBG_EMAIL_URL"
SMS_URL_ENV = "TDBG_SMS_URL"


class MessageAction:
    """Sends a message through Apprise.

    Parameters
    ----------
    rule_name
        Who sends it.
    message_type
        ``email`` or ``sms``.
    message_endpoint
        An Apprise URL, such as ``mailtos://user:password@host?to=me@example.org``. A mere address
        or number is put in place of ``{endpoint}`` in the URL that ``TDBG_EMAIL_URL`` or
        ``TDBG_SMS_URL`` holds: there is no service here that would know a way to it.
    run_path
        Where the run stands.
    """

    def __init__(self, rule_name: str, message_type: str, message_endpoint: str, run_path: str = "") -> None:
        self.rule_name = rule_name
        self._run_path = Path(run_path)
        variable = EMAIL_URL_ENV if message_type == "email" else SMS_URL_ENV
        template = os.environ.get(variable, "")
        self._url = message_endpoint if "://" in message_endpoint else ""
        if not self._url and template:
            self._url = template.replace("{endpoint}", message_endpoint)
        if not self._url:
            get_logger().warning(
                "Rule %s cannot send %s to a mere address: give an Apprise URL as endpoint, or set %s.",
                rule_name,
                message_type,
                variable,
            )

    def invoke(self, message: str, *, step: int = -1) -> None:
        """Send it.

        Raises
        ------
        NotifyError
            If it was not accepted.
        """
        if self._url:
            finding = Finding(self.rule_name, Severity.WARNING, step, step, message)
            Notify(urls=(self._url,)).perform(finding, ActionContext(self._run_path, self._run_path.name))
