"""Profiles of the AWS command line (``~/.aws``), read by botocore, which knows all their forms.

obstore itself reads the environment and the metadata service of the machine, not these files.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.errors import ConfigError, MissingDependencyError
from tdbg_lab.store.remote.endpoint import endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

__all__ = ["PROFILE", "Profile", "ProfileError", "add_profile", "said_of_profile"]

PROFILE: Final = "profile"
"""Our own storage option of S3: the profile that gives credentials."""
_NAMES: Final = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")
_FILES: Final = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
}
_KEY_OPTIONS: Final = {"access_key_id", "skip_signature"}
_REGION_OPTIONS: Final = {"region", "default_region"}
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_LEFT_TO_OBSTORE: Final = ("container-role", "iam-role")
"""Where botocore looks last, and waits for services that may not be there."""
_LIFE: Final = timedelta(minutes=5)
"""How long credentials are used before they are asked for anew; botocore gives none that end sooner."""
_LEAST: Final = timedelta(minutes=1)
_SAID: Final = re.compile(r"ProfileError: ([^\n]{1,400})")

_given: dict[tuple[str, ...], dict[str, Any]] = {}
"""What profiles gave last, by their names and files: to ask may take seconds, or need the user."""
_asking = Lock()


class ProfileError(Exception):
    """A profile gives no credentials just now. obstore has its text within that of an error of its own."""


def said_of_profile(text: str) -> str | None:
    """What a `ProfileError` said, from the text of an error of obstore; None where it was another error."""
    found = _SAID.search(text)
    return found[1] if found else None


def add_profile(options: MutableMapping[str, Any]) -> None:
    """Put into `options` the profile that holds, if one does, and its region and endpoint.

    Keys, among the options or in the environment, go before a profile that is not named among the options;
    region and endpoint of either go before those of any profile.

    Raises
    ------
    ConfigError
        If there is no such profile, it has no credentials, or its files cannot be read.
    MissingDependencyError
        If a profile is named, and botocore is not installed.
    """
    named = options.get(PROFILE)
    if named is None and (_has_keys(options) or not _is_set_up()):
        return
    if named is not None and not (isinstance(named, str) and named):
        raise ConfigError(f"The storage option {PROFILE!r} is not the name of a profile of AWS.")
    chosen = named or _first_set(_NAMES)
    try:
        profile = Profile(chosen or "default")
    except ImportError:
        if not chosen:
            return
        raise MissingDependencyError(
            f"The profile {chosen!r} of AWS is read by botocore, which is not installed: "
            "pip install tdbg-lab[s3]"
        ) from None
    if not chosen and not profile.exists:
        return
    settings = profile.settings()
    if profile.has_credentials():
        options[PROFILE] = profile.name
    elif named:
        raise ConfigError(f"The profile {named!r} of AWS has no credentials: aws configure --profile {named}")
    if "region" in settings and not (_spelled(options) & _REGION_OPTIONS or _first_set(_REGIONS)):
        options["region"] = settings["region"]
    if "endpoint" in settings and not endpoint(options):
        options["endpoint"] = settings["endpoint"]


def _spelled(options: Mapping[str, Any]) -> set[str]:
    """Names of the options that are set, as obstore knows them: with and without the provider."""
    return {key.lower().removeprefix("aws_") for key, value in options.items() if value}


def _has_keys(options: Mapping[str, Any]) -> bool:
    return bool(_spelled(options) & _KEY_OPTIONS or os.environ.get("AWS_ACCESS_KEY_ID"))


def _is_set_up() -> bool:
    return bool(_first_set(_NAMES)) or any(one.is_file() for one in _files())


def _files() -> list[Path]:
    files = (os.environ.get(name) or usual for name, usual in _FILES.items())
    return [Path(os.path.expanduser(one)) for one in files]  # noqa: PTH111 - raises nothing without a home


def _first_set(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


class Profile:
    """A profile, which obstore asks for credentials when those it has are about to end.

    The files are read anew then: keys may have been changed since, or a sign-in renewed.

    Raises
    ------
    ImportError
        If botocore is not installed.
    """

    def __init__(self, name: str) -> None:
        import botocore.exceptions
        import botocore.session

        self.name = name
        self._botocore = botocore
        self._failures = botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError

    @property
    def exists(self) -> bool:
        """Whether one of the files has it."""
        try:
            return self.name in self._session().available_profiles
        except self._failures:  # told where it is used
            return True

    def settings(self) -> dict[str, str]:
        """Its ``region`` and ``endpoint``, as far as it has them.

        Raises
        ------
        ConfigError
            If there is no such profile, or the files cannot be read.
        """
        session = self._session()
        try:
            profile, services = session.get_scoped_config(), session.full_config.get("services", {})
        except self._botocore.exceptions.ProfileNotFound:
            known = ", ".join(map(repr, session.available_profiles[:10])) or "none"
            raise ConfigError(
                f"There is no profile {self.name!r} in the files of AWS (~/.aws); known profiles: {known}."
            ) from None
        except self._failures as error:
            raise ConfigError(f"The files of AWS (~/.aws) cannot be read: {_brief(error)}.") from None
        own = services.get(profile.get("services"), {}).get("s3", {})
        of_s3 = own.get("endpoint_url") if isinstance(own, dict) else None
        found = {"region": profile.get("region"), "endpoint": of_s3 or profile.get("endpoint_url")}
        return {key: value for key, value in found.items() if isinstance(value, str) and value}

    def has_credentials(self) -> bool:
        """Whether it says where to get some, though they may not be had just now."""
        try:
            if self._session().get_scoped_config().get("credential_process"):
                return True  # which may take its time: it is called when they are needed
            return self._credentials() is not None
        except self._failures:
            return True

    def __call__(self) -> dict[str, Any]:
        """Credentials, and until when they are used.

        Raises
        ------
        ProfileError
            If there are none just now.
        """
        identity = (self.name, *map(str, _files()))
        with _asking:
            given = _given.get(identity)
            if given is None or given["expires_at"] - datetime.now(UTC) < _LEAST:
                given = _given[identity] = self._ask()
        return given

    def _ask(self) -> dict[str, Any]:
        expires_at = datetime.now(UTC) + _LIFE
        try:
            credentials = self._credentials()
            keys = None if credentials is None else credentials.get_frozen_credentials()
        except self._failures as error:
            raise ProfileError(
                f"The profile {self.name!r} of AWS gives no credentials ({_brief(error)}): sign in again "
                f"(aws sso login --profile {self.name}) or set it right."
            ) from None
        if keys is None:
            raise ProfileError(f"The profile {self.name!r} of AWS has no credentials any more.")
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": expires_at,
        }

    def _session(self) -> Any:
        return self._botocore.session.Session(profile=self.name)

    def _credentials(self) -> Any:
        session = self._session()
        chain = session.get_component("credential_provider")
        for other in _LEFT_TO_OBSTORE:
            chain.remove(other)
        return session.get_credentials()


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")
