"""Tell people by e-mail."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import TYPE_CHECKING, Literal

from tdbg_lab.actions.base import Message
from tdbg_lab.actions.message import body_of, title_of
from tdbg_lab.actions.notify import NotifyError
from tdbg_lab.actions.texts import texts
from tdbg_lab.errors import ConfigError

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["Email"]

_PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True, kw_only=True)
class Email(Message):
    """Send a finding by e-mail.

    ::

        Email(to="me@example.org", server="mail.example.org", user="me", password=os.environ["MAIL_PASSWORD"])

    Raises
    ------
    ConfigError
        An address or the server is wrong.
    """

    to: tuple[str, ...]
    """Who gets it: an address, or several."""
    server: str
    """Host of the mail server, ``host`` or ``host:port``."""
    sender: str = ""
    """From whom; by default the first of `to`."""
    user: str = ""
    """Name to log in with; ``""`` where the server asks for none."""
    password: str = field(default="", repr=False)
    """Never shown, and never written anywhere."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """``starttls`` (port 587), ``tls`` from the first byte (465), or ``none`` (25; no password then)."""
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "to", texts(self.to, "to of Email", "an address, or several"))
        for address in (*self.to, *((self.sender,) if self.sender else ())):
            _check_address(address)
        if not self.to:
            raise ConfigError("Email has no one to go to: give to='me@example.org'.")
        if self.security not in tuple(_PORTS):  # by comparing: what is given may be of any type
            raise ConfigError(f"security of Email is {self.security!r}; expected {', '.join(_PORTS)}.")
        for name in ("user", "password"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(
                    f"{name} of Email is not a text; leave it out where the server asks for none."
                )
        if self.password and self.security == "none":
            raise ConfigError("Email would send the password in the clear: use security='starttls' or 'tls'.")
        self._place()

    def _place(self) -> tuple[str, int]:
        given: object = self.server
        text = given if isinstance(given, str) else ""
        host, colon, port = text.rpartition(":") if text.count(":") == 1 else (text, "", "")
        is_port = port.isdecimal() and 0 < int(port[:8]) < 2**16
        if not host or any(one.isspace() or one == "/" for one in host) or (colon and not is_port):
            raise ConfigError(f"server of Email is {given!r}; expected a host, or host:port.")
        return host, int(port) if colon else _PORTS[self.security]

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Send it; raises `NotifyError` with what the server said."""
        try:
            with self._connected() as server:
                refused = server.send_message(self._message(finding, context))
        except smtplib.SMTPAuthenticationError as error:
            raise NotifyError(
                f"The mail server refused the user name or password ({error.smtp_code})."
            ) from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = ", ".join(str(code) for code, _ in error.recipients.values())
            raise NotifyError(f"The mail server refused every recipient ({codes}).") from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotifyError(f"The mail could not be sent: {type(error).__name__}: {error}") from None
        if refused:
            raise NotifyError(f"The mail server refused {len(refused)} of {len(self.to)} recipients.")

    def _connected(self) -> smtplib.SMTP:
        host, port = self._place()
        if self.security == "tls":
            context = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=self.timeout_s, context=context)
        else:
            server = smtplib.SMTP(host, port, timeout=self.timeout_s)
        try:
            if self.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if self.user:
                server.login(self.user, self.password)
        except BaseException:
            server.close()
            raise
        return server

    def _message(self, finding: Finding, context: ActionContext) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = title_of(finding, context)
        message["From"] = self.sender or self.to[0]
        message["To"] = ", ".join(self.to)
        message["Date"] = formatdate(localtime=True)
        message["Message-ID"] = make_msgid(domain="tdbg-lab.invalid")
        message.set_content(body_of(finding, context))
        return message


def _check_address(address: object) -> None:
    text = address if isinstance(address, str) else ""
    name, _, domain = text.rpartition("@")
    if not name or not domain or any(one.isspace() or one in ",;<>" for one in text):
        raise ConfigError(f"{str(address)[:80]!r} is not an e-mail address, such as me@example.org.")
