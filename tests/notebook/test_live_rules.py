from __future__ import annotations

from tdbg_lab.notebook.live_rules import LiveRules
from tdbg_lab.run import open_run


def test_table_below_the_picture_follows_the_run(training):
    live = LiveRules(open_run(training.path), {})
    try:
        live.refresh()
        assert "75% of the units" not in live.table.value
        training.find()
        training.step()
        assert live.refresh()
        assert "75% of the units" in live.table.value
        assert live.widget.children[-1] is live.table
    finally:
        live.close()
