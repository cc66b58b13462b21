"""Tell a program: a POST with the finding as JSON."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tdbg_lab.actions.base import Message
from tdbg_lab.actions.message import body_of, title_of
from tdbg_lab.actions.notify import NotifyError
from tdbg_lab.errors import ConfigError
from tdbg_lab.store.jsonable import jsonable

if TYPE_CHECKING:
    from tdbg_lab.actions.base import ActionContext
    from tdbg_lab.records import Finding

__all__ = ["Webhook"]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer that is not 2xx: what was meant for one server goes to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Webhook(Message):
    """Post a finding to a URL.

    The body is JSON: ``{"title", "text", "run": {"name", "path"}, "finding": {"rule", "severity",
    "step_first", "step_last", "message", "tensor", "module", "evidence", "advice", "fix", "id", ...}}``.
    Numbers that JSON does not know are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.

    Raises
    ------
    ConfigError
        It is not an ``http://`` or ``https://`` URL, or a header is wrong.
    """

    url: str = field(repr=False)
    """Never shown, and never written anywhere: it may hold a token."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)
    """Sent with it, such as ``{"Authorization": "Bearer ..."}``."""
    timeout_s: float = field(default=15.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if wrong := _wrong(self.url):
            raise ConfigError(f"url of Webhook {wrong}.")
        headers: Any = self.headers
        if not isinstance(headers, Mapping):
            raise ConfigError(
                f"headers of Webhook is a {type(headers).__name__}; expected names with values."
            )
        for name, value in headers.items():
            if not all(isinstance(one, str) and one.isprintable() for one in (name, value)):
                raise ConfigError(f"header {str(name)[:40]!r} of Webhook is not text of one line.")

    def perform(self, finding: Finding, context: ActionContext) -> None:
        """Post it; raises `NotifyError` unless the answer is 2xx."""
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self.url,
            data=json.dumps(jsonable(_body(finding, context)), allow_nan=False).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "tdbg-lab", **self.headers},
            method="POST",
        )
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=self.timeout_s):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            raise NotifyError(f"The webhook answered {error.code}.") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise NotifyError(f"The webhook cannot be reached: {reason}.") from None


def _wrong(url: object) -> str:
    """What is wrong with the address, without a word of it; empty where nothing is."""
    if not isinstance(url, str):
        return f"is of type {type(url).__name__}; expected text, such as 'https://example.org/hook'"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "has brackets that hold no IPv6 address"
    if parts.scheme not in {"http", "https"}:
        return "is not a URL that begins with http:// or https://"
    try:
        _ = parts.port  # read to be checked: a wrong one raises
    except ValueError:
        return "has a port that is no number from 0 to 65535"
    return "" if parts.hostname else "names no server, as in https://example.org/hook"


def _body(finding: Finding, context: ActionContext) -> dict[str, Any]:
    return {
        "title": title_of(finding, context),
        "text": body_of(finding, context),
        "run": {"name": context.run_name or context.run_path.name, "path": str(context.run_path)},
        "finding": asdict(finding),
    }
