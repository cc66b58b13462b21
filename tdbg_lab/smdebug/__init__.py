"""The import surface of SageMaker Debugger's ``smdebug``, over tdbg-lab.

Code written for ``smdebug`` runs after its imports are changed from ``smdebug`` to
``tdbg_lab.smdebug``. Hooks write tdbg-lab run directories, so every view and rule works on them;
trials read those, and stores that ``smdebug`` itself wrote. ``docs/smdebug.md`` has the table of
what is the same and what is not.

Names, arguments and behaviour are the predecessor's; nothing here is new except what is said to be.
"""

from __future__ import annotations

from tdbg_lab.smdebug.core.collection import CollectionKeys
from tdbg_lab.smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the name in user code
from tdbg_lab.smdebug.core.reduction_config import ReductionConfig
from tdbg_lab.smdebug.core.save_config import SaveConfig, SaveConfigMode

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "modes"]
