/**
 * Titles of tabs: they tell the run where tabs of several runs are open.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell } from '@jupyterlab/application';
import type { Widget } from '@lumino/widgets';

import { Dashboard } from '../panels/dashboard';
import { RulesPanel } from '../panels/rules';
import { ViewPanel } from '../panels/view';

/** A panel whose title tells its run only where it has to; that of a dashboard is the name of its run. */
type TitledPanel = RulesPanel | ViewPanel;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:titles',
  description: 'Tells tabs of several runs apart.',
  autoStart: true,
  optional: [ILabShell],
  activate: (_: JupyterFrontEnd, labShell: ILabShell | null): void => {
    let tabs: ReadonlyArray<TitledPanel> = [];
    labShell?.layoutModified.connect(() => {
      const old = tabs;
      const shown = [...labShell.widgets('main')];
      const runs = new Set(
        shown
          .filter(one => one instanceof Dashboard || isTitled(one))
          .map(({ run }) => run)
      );
      tabs = shown.filter(isTitled);
      // What has left the tabs may stand in a dashboard now.
      for (const panel of new Set([...old, ...tabs])) {
        if (!panel.isDisposed) {
          panel.titleTellsRun = runs.size > 1 && tabs.includes(panel);
        }
      }
    }, plugin);
  }
};

function isTitled(widget: Widget): widget is TitledPanel {
  return widget instanceof RulesPanel || widget instanceof ViewPanel;
}

export default plugin;
