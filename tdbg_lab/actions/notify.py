"""Tell people: e-mail, SMS, webhooks, chat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tdbg_lab.actions.base import Action
from tdbg_lab.actions.message import body_of, title_of
from tdbg_lab.errors import ConfigError, MissingDependencyError, TdbgError

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["Notify", "NotifyError"]


class NotifyError(TdbgError, OSError):
    """A notification was not accepted."""


@dataclass(frozen=True, kw_only=True)
class Notify(Action):
    """Send a finding to one or more places.

    Parameters
    ----------
    urls
        Where to, as Apprise knows them: ``mailtos://user:password@host?to=me@example.org`` (e-mail),
        ``json://host/path`` or ``jsons://`` (webhook), ``slack://...``, ``twilio://...`` (SMS) and about
        a hundred others. They may hold secrets, so they are never shown or written anywhere.

    Raises
    ------
    ConfigError
        On `perform`, if no URL is given or one is not understood.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        given: Any = self.urls
        object.__setattr__(self, "urls", (given,) if isinstance(given, str) else tuple(given))

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Send title and body to every URL; raises `NotifyError` when one refuses."""
        try:
            import apprise
        except ImportError as error:
            raise MissingDependencyError("Notify needs apprise: pip install apprise") from error
        if not self.urls:
            raise ConfigError("Notify has no urls: give at least one, like 'json://localhost:8080/hook'.")
        courier = apprise.Apprise()
        for number, url in enumerate(self.urls, start=1):
            if not courier.add(url):
                raise ConfigError(f"URL {number} of Notify is not one that Apprise understands.")
        kinds = {"critical": apprise.NotifyType.FAILURE, "warning": apprise.NotifyType.WARNING}
        sent = courier.notify(
            title=title_of(finding, context),
            body=body_of(finding, context),
            notify_type=kinds.get(str(finding.severity), apprise.NotifyType.INFO),
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not sent:
            raise NotifyError("A notification was not accepted by its server.")
