"""What went wrong with an object store, in one sentence, from the text of an error of obstore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tdbg_lab.errors import StoreError
from tdbg_lab.store.remote.profiles import said_of_profile

if TYPE_CHECKING:
    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["RemoteError", "explained", "first_line", "is_bucket_missing"]

_CODE = re.compile(r"<Code>(\w{1,80})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_ENDPOINT = re.compile(r"performing \w+ (https?://[^/\s?]{1,200})")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist", "container does not exist")
_RETRIED_STATUS = {"408", "425", "429"}
_NO_METADATA = ("169.254.169.254", "metadata.google", "fd00:ec2", "MissingCredential")
_AZURE_TOKEN = re.compile(r"'az account get-access-token' command failed: ([^\n]{0,200})")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or a profile (aws configure)",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS in the environment, or a sign-in "
    "(gcloud auth application-default login)",
    "az": "AZURE_STORAGE_ACCOUNT_KEY in the environment, or a sign-in "
    "(az login) and AZURE_USE_AZURE_CLI=true",
}
"""What is expected of each provider, where there is nothing."""


class RemoteError(StoreError):
    """An object store did not do what was asked.

    ``transient`` says that trying again later may help without anybody doing something; ``denied`` that it
    knows us, or not, and gives no right to do it.
    """

    def __init__(self, message: str, *, transient: bool, denied: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.denied = denied

    @property
    def may_pass(self) -> bool:
        """Whether the same may be done later, with time or with other rights."""
        return self.transient or self.denied


def is_bucket_missing(error: Exception) -> bool:
    """Whether there is no such bucket; else a thing that is not found is an object."""
    return any(sign in str(error) for sign in _NO_BUCKET)


def explained(error: Exception, url: StoreUrl, action: str) -> RemoteError:
    """What it says, without the rest of its text, which may hold signed addresses."""
    text = str(error)
    code, status, endpoint = (pattern.search(text) for pattern in (_CODE, _STATUS, _ENDPOINT))
    said = ", ".join(found[1] for found in (status, code) if found)
    if is_bucket_missing(error):
        return RemoteError(
            f"There is no bucket {url.bucket!r} ({url.root}): check its name, region and endpoint.",
            transient=False,
        )
    if "invalid path" in text:
        return RemoteError(
            f"An object below {url} has a name with '..', '//' or the like, so nothing there can be listed: "
            "remove it.",
            transient=False,
        )
    no_profile = said_of_profile(text)
    if no_profile is not None:
        return RemoteError(no_profile, transient=False, denied=True)
    no_token = _AZURE_TOKEN.search(text)
    if no_token is not None:
        return RemoteError(
            f"The Azure command line gives no token for {url.root} ({no_token[1].rstrip(' .')}): az login.",
            transient=False,
            denied=True,
        )
    if any(sign in text for sign in _NO_METADATA):
        return RemoteError(
            f"No credentials were found for {url.root}; expected {_CREDENTIALS[url.scheme]}; "
            "or give storage_options.",
            transient=False,
            denied=True,
        )
    if status and status[1] in {"401", "403"}:
        return RemoteError(
            f"The credentials do not allow to {action} {url} ({said}): ask for the right, or use others.",
            transient=False,
            denied=True,
        )
    if status and status[1][0] in "34" and status[1] not in _RETRIED_STATUS:
        return RemoteError(f"{url.root} refused to {action} {url} ({said}).", transient=False)
    where = f" at {endpoint[1]}" if endpoint else ""
    return RemoteError(f"{url.root}{where} cannot be reached ({said or first_line(error)}).", transient=True)


def first_line(error: Exception) -> str:
    """The short part of obstore's text: what comes last on its first line."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line.rpartition(" - ")[2].rpartition("Generic ")[2].strip(" .")[:120]
