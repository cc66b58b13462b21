"""One prefix of an object store, with our errors. The only file that imports obstore."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.errors import ConfigError, MissingDependencyError, StoreError
from tdbg_lab.store.remote.endpoint import endpoint
from tdbg_lab.store.remote.failures import RemoteError, explained, first_line, is_bucket_missing
from tdbg_lab.store.remote.profiles import PROFILE, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tdbg_lab.store.remote.url import StoreUrl

__all__ = ["QUICK", "STEADY", "ObjectInfo", "Objects", "Patience"]

_MULTIPART_BYTES = 32 * 2**20
_PAGE = 1000
_CLIENT, _RETRY = "client_options", "retry_config"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one request may take, in seconds."""

    connect_s: float
    silence_s: float
    """Without a byte arriving."""
    request_s: float
    retries: int
    total_s: float
    """With all retries; each of them is a request of its own."""


QUICK: Final = Patience(connect_s=3, silence_s=5, request_s=10, retries=1, total_s=8)
"""Somebody waits."""
STEADY: Final = Patience(connect_s=5, silence_s=20, request_s=120, retries=2, total_s=60)
"""Nobody waits."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object, as a listing shows it."""

    key: str
    size: int
    modified_ns: int
    tag: str
    """Changes with the content; empty where a store gives none."""


class Objects:
    """The objects below `url`; keys are relative to it. Thread-safe. Makes no request when built.

    Raises
    ------
    MissingDependencyError
        If obstore is not installed.
    ConfigError
        If an option is wrong.
    """

    def __init__(
        self, url: StoreUrl, options: Mapping[str, Any] | None = None, patience: Patience = STEADY
    ) -> None:
        self.url = url
        try:
            import obstore
        except ImportError:
            raise MissingDependencyError(
                f"Runs on {url.scheme}:// need obstore, which is not installed: pip install tdbg-lab[s3]"
            ) from None
        self._obstore = obstore
        self._store = _open(obstore, url, dict(options or {}), patience)

    def put(self, key: str, data: bytes | Path) -> None:
        """Write an object whole, or replace it.

        Raises
        ------
        OSError
            If `data` is a file that cannot be read.
        RemoteError
            If it cannot be written.
        """
        if isinstance(data, Path) and data.stat().st_size <= _MULTIPART_BYTES:
            data = data.read_bytes()
        with self._errors("write to"):
            self._obstore.put(self._store, key, data, use_multipart=isinstance(data, Path))

    def create(self, key: str, data: bytes) -> bool:
        """Write an object unless there is one of that name; whether this call wrote it.

        Raises
        ------
        RemoteError
            If it cannot be written.
        """
        exceptions = self._obstore.exceptions
        with self._errors("write to"):
            try:
                self._obstore.put(self._store, key, data, mode="create")
            except exceptions.AlreadyExistsError:
                return False
            except exceptions.BaseError as error:
                if not _is_unsupported(error):
                    raise
                return self._create_plainly(key, data)
        return True

    def _create_plainly(self, key: str, data: bytes) -> bool:
        """The same where a store knows no conditional writes: two at the same moment both succeed."""
        if self.get(key) is not None:
            return False
        self.put(key, data)
        return True

    def get(self, key: str, limit: int = 64 * 2**20) -> bytes | None:
        """Content of an object of at most `limit` bytes; None when there is none.

        Raises
        ------
        RemoteError
            If it cannot be read, or is larger.
        """
        with self._errors("read"):
            try:
                found = self._obstore.get(self._store, key)
                if found.meta["size"] > limit:
                    raise RemoteError(f"{self.url}/{key} is larger than {limit} bytes.", transient=False)
                return bytes(found.bytes())
            except FileNotFoundError as error:
                if is_bucket_missing(error):
                    raise
                return None

    def get_range(self, key: str, first: int, end: int) -> bytes | None:
        """Bytes of an object; None when there is no such object.

        Raises
        ------
        RemoteError
            If they cannot be read.
        """
        with self._errors("read"):
            try:
                return bytes(self._obstore.get_range(self._store, key, start=first, end=end))
            except FileNotFoundError as error:
                if is_bucket_missing(error):
                    raise
                return None

    def download(self, key: str, target: Path, limit: int) -> bool:
        """Write an object of at most `limit` bytes into a file; False when there is none.

        Raises
        ------
        RemoteError
            If it cannot be read, or is larger.
        OSError
            If the file cannot be written.
        """
        with self._errors("read"):
            try:
                found = self._obstore.get(self._store, key)
            except FileNotFoundError as error:
                if is_bucket_missing(error):
                    raise
                return False
            if found.meta["size"] > limit:
                raise RemoteError(f"{self.url}/{key} is larger than {limit} bytes.", transient=False)
            pieces = iter(found.stream())
        with target.open("wb") as file:
            while True:
                with self._errors("read"):
                    piece = next(pieces, None)
                if piece is None:
                    return True
                file.write(piece)

    def walk(self) -> Iterator[ObjectInfo]:
        """All objects.

        Raises
        ------
        RemoteError
            If they cannot be listed.
        """
        with self._errors("list"):
            pages = iter(self._obstore.list(self._store, chunk_size=_PAGE))
        while True:
            with self._errors("list"):
                page = next(pages, None)
            if page is None:
                return
            yield from map(_info, page)

    def folder(self, prefix: str = "") -> tuple[list[str], list[ObjectInfo]]:
        """Folders and objects directly below `prefix`; names of folders without what is above.

        Raises
        ------
        RemoteError
            If they cannot be listed.
        """
        with self._errors("list"):
            found = self._obstore.list_with_delimiter(self._store, prefix or None)
        folders = [each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"]]
        return [each for each in folders if each], [_info(each) for each in found["objects"]]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there do no harm.

        Raises
        ------
        RemoteError
            If they cannot be removed.
        """
        with self._errors("delete from"):
            try:
                self._obstore.delete(self._store, list(keys))
            except FileNotFoundError as error:  # Azure minds, and stops there
                if is_bucket_missing(error):
                    raise
                for key in keys:
                    self._delete_one(key)

    def _delete_one(self, key: str) -> None:
        try:
            self._obstore.delete(self._store, key)
        except FileNotFoundError as error:
            if is_bucket_missing(error):
                raise

    @contextlib.contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        """Our errors in place of obstore's."""
        try:
            yield
        except StoreError:
            raise
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise explained(error, self.url, action) from None  # its text holds request and answer


def _open(obstore: Any, url: StoreUrl, options: dict[str, Any], patience: Patience) -> Any:
    profile = options.pop(PROFILE, None) if url.scheme == "s3" else None
    client = {
        "connect_timeout": timedelta(seconds=patience.connect_s),
        "read_timeout": timedelta(seconds=patience.silence_s),
        "timeout": timedelta(seconds=patience.request_s),
        **_nested(options, _CLIENT),
    }
    if endpoint(options).startswith("http://"):  # who writes that wants it
        client.setdefault("allow_http", True)
    retry = {
        "max_retries": patience.retries,
        "retry_timeout": timedelta(seconds=patience.total_s),
        "backoff": {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=2),
            "base": 2,
        },
        **_nested(options, _RETRY),
    }
    try:
        return obstore.store.from_url(
            str(url),
            config=options or None,
            client_options=client,
            retry_config=retry,
            **({"credential_provider": Profile(profile)} if profile else {}),
        )
    except obstore.exceptions.UnknownConfigurationKeyError as error:
        found = re.search(r"'([^']{1,80})'", str(error))
        raise ConfigError(
            f"{found[1] if found else 'One of them'!r} is not a storage option of {url.scheme}://; "
            "the options are those of obstore."
        ) from None
    except (obstore.exceptions.BaseError, TypeError, ValueError) as error:
        raise ConfigError(f"{url.root} cannot be opened: {first_line(error)}.") from None


def _nested(options: dict[str, Any], name: str) -> dict[str, Any]:
    value = options.pop(name, None) or {}
    if not isinstance(value, dict):
        raise ConfigError(f"The storage option {name!r} is not an object of settings.")
    return value


def _info(found: Mapping[str, Any]) -> ObjectInfo:
    modified_ns = int(found["last_modified"].timestamp() * 1e3) * 10**6
    return ObjectInfo(found["path"], int(found["size"]), modified_ns, found.get("e_tag") or "")


def _is_unsupported(error: Exception) -> bool:
    return type(error).__name__ == "NotSupportedError" or "status code: 501" in str(error)
