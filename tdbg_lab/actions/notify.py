"""Tell people through Apprise: chat, SMS, push services, and about a hundred others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.actions.base import Message
from tdbg_lab.actions.message import body_of, title_of
from tdbg_lab.actions.texts import texts
from tdbg_lab.errors import ConfigError, MissingDependencyError, TdbgError

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["Notify", "NotifyError"]


class NotifyError(TdbgError, OSError):
    """A notification was not accepted."""


@dataclass(frozen=True)
class Notify(Message):
    """Send a finding to one or more places.

    Parameters
    ----------
    urls
        Where to, as Apprise knows them: ``slack://...``, ``workflows://...`` (Teams), ``twilio://...``
        (SMS), ``mailtos://...``, ``json://...`` and about a hundred others; for Slack and Teams also the
        ``https://`` address of an incoming webhook. They may hold secrets, so they are never shown or
        written anywhere.

    Raises
    ------
    ConfigError
        No URL is given, or one is not understood.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "urls", texts(self.urls, "urls of Notify", "a URL, or several"))
        if not self.urls:
            raise ConfigError("Notify has no urls: give at least one, like 'slack://token/#channel'.")
        self._courier()

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Send title and body to every URL; raises `NotifyError` when one refuses."""
        apprise = _apprise()
        kinds = {"critical": apprise.NotifyType.FAILURE, "warning": apprise.NotifyType.WARNING}
        sent = self._courier().notify(
            title=title_of(finding, context),
            body=body_of(finding, context),
            notify_type=kinds.get(str(finding.severity), apprise.NotifyType.INFO),
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not sent:
            raise NotifyError("A notification was not accepted by its server.")

    def _courier(self) -> Any:
        courier = _apprise().Apprise()
        urls: tuple[object, ...] = self.urls
        for number, url in enumerate(urls, start=1):
            if not isinstance(url, str) or not courier.add(url):
                raise ConfigError(
                    f"URL {number} of Notify is not one that Apprise understands or can use here: "
                    "see its list of services for the form."
                )
        return courier


def _apprise() -> Any:
    try:
        import apprise
    except ImportError as error:
        raise MissingDependencyError("Notify needs apprise: pip install apprise") from error
    return apprise
