"""Bounds on what is read of a foreign store: sizes in bytes, counts in things."""

from __future__ import annotations

from typing import Final

MAX_INDEX_BYTES: Final = 64 * 2**20
"""One index file; about 150 bytes a tensor."""
MAX_INDEX_FILES: Final = 2_000_000
MAX_ENTRIES: Final = 50_000_000
"""Tensors times steps times workers."""
MAX_PAYLOAD: Final = 200_000
"""Tensors of one index file."""
MAX_COLLECTION_FILES: Final = 4096
MAX_COLLECTIONS: Final = 4096
MAX_PATTERN_CHARS: Final = 1024
MAX_WORKERS: Final = 4096
MAX_RECORD_BYTES: Final = 4 * 2**30
MAX_DIMENSIONS: Final = 32
MAX_STRINGS: Final = 10_000_000
"""Strings in one tensor."""
MAX_TEXT_ROOM: Final = 64 * 2**20
"""Characters of an array of texts, each counted as long as the longest."""

KEPT_FILE_BYTES: Final = 64 * 2**20
"""Event files kept in memory when all of a store's fit in; else records are read one by one."""
BATCH_BYTES: Final = 64 * 2**20
"""Values measured at once."""
LIST_CACHE_BYTES: Final = 64 * 2**20
"""Histograms and channels that one reader keeps."""

MAX_PROFILE_FILES: Final = 100_000
MAX_PROFILE_BYTES: Final = 256 * 2**20
"""One file of samples or spans."""
MAX_SAMPLES: Final = 5_000_000
MAX_SPANS: Final = 5_000_000

SILENCE_NS: Final = 600 * 10**9
"""A store that says nothing about its end counts as ended after this long without a write. Long: by
default smdebug saves every 500th step."""
