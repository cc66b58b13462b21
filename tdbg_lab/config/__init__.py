"""What to capture, when and how: the settings of `tdbg_lab.attach`, checked.

A wrong key or type gives a `ConfigError` with one sentence: the key, what was found, what is
expected, and the closest valid name. Nothing here knows a training framework.
"""

from tdbg_lab.config.capture import DEFAULT_SAVE_EVERY, CaptureConfig
from tdbg_lab.config.collection import CollectionConfig, default_collections
from tdbg_lab.config.file import load_config
from tdbg_lab.config.schedule import SaveSchedule

__all__ = [
    "DEFAULT_SAVE_EVERY",
    "CaptureConfig",
    "CollectionConfig",
    "SaveSchedule",
    "default_collections",
    "load_config",
]
