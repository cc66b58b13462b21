"""The collections of a hook, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.core.collection import Collection
from tdbg_lab.smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CollectionManager"]


class CollectionManager:
    """Holds collections; a collection that is asked for is made.

    Parameters
    ----------
    collections
        Those to begin with, by name.
    collection_class
        What new ones are made of: a framework may add to it.
    """

    def __init__(
        self,
        collections: Mapping[str, Collection] | None = None,
        collection_class: type[Collection] = Collection,
    ) -> None:
        self.collections = dict(collections or {})
        self._class = collection_class
        self._num_workers = 1

    def create_collection(self, name: str) -> Collection:
        """Make an empty collection, unless there is one."""
        return self.collections.setdefault(name, self._class(name))

    def get(self, name: str, create: bool = True) -> Collection:
        """The collection called `name`; made when it is missing.

        Raises
        ------
        SMDebugError
            If it is missing and `create` is False.
        """
        if name not in self.collections and not create:
            raise SMDebugError(
                f"There is no collection {name!r}; get_collection() without create=False makes it."
            )
        return self.create_collection(name)

    def add(self, arg: Collection | str) -> None:
        """Add a collection, or make one of that name.

        Raises
        ------
        SMDebugTypeError
            If it is neither.
        """
        if isinstance(arg, str):
            self.create_collection(arg)
        elif isinstance(arg, Collection):
            self.collections[arg.name] = arg
        else:
            raise SMDebugTypeError(f"{arg!r} is no collection; expected a Collection or the name of one.")

    def get_collections(self) -> dict[str, Collection]:
        """All of them, by name."""
        return self.collections

    def get_num_workers(self) -> int:
        """Workers that write."""
        return self._num_workers

    def set_num_workers(self, num_workers: int) -> None:
        """Say how many workers write."""
        self._num_workers = num_workers

    def to_json_dict(self) -> dict[str, Any]:
        """As JSON-able data."""
        collections = {name: one.to_json_dict() for name, one in self.collections.items()}
        return {"collections": collections, "_meta": {"num_workers": self._num_workers}}

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] = Collection) -> CollectionManager:
        """From the JSON of `to_json_dict`.

        Raises
        ------
        SMDebugValueError
            If it is JSON of something else.
        """
        value = json.loads(s)
        if not isinstance(value, dict) or not isinstance(value.get("collections"), dict):
            raise SMDebugValueError(f"{s!r:.80} holds no collections; expected what to_json_dict gives.")
        manager = cls(
            {name: collection_class.from_dict(one) for name, one in value["collections"].items()},
            collection_class,
        )
        manager.set_num_workers(int(value.get("_meta", {}).get("num_workers", 1)))
        return manager
