/**
 * Tells of new findings, each once.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { IFinding, Severity } from '../api/wire';
import { CommandIDs } from '../commands';
import type { RunModel } from '../model/run';
import { isolated, nameAt } from '../panels/name';
import { showFinding } from '../panels/rules/show';
import type { IFindingEvent } from '../tokens';
import { ITdbgService } from '../tokens';

const TYPES: { readonly [severity in Severity]: Notification.TypeOptions } = {
  notice: 'info',
  warning: 'warning',
  critical: 'error'
};

/** Most letters of the name of a run: of what it announces, JupyterLab shows the first 140. */
const MOST_OF_NAME = 30;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:findings',
  description: 'Announces what the rules find.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const told = new Set<string>();
    service.findingAdded.connect(async (_, event: IFindingEvent) => {
      const { finding, run } = event;
      // What follows from something told already is grouped below it, in the rules panel.
      const isKnown =
        finding.cause !== '' && told.has(`${run}/${finding.cause}`);
      if (service.settings.announces(finding.severity) && !isKnown) {
        told.add(`${run}/${finding.id}`);
        const name = await nameOf(service, run, trans);
        const isLong = name.length > MOST_OF_NAME;
        const short = isLong ? `${name.slice(0, MOST_OF_NAME)}…` : name;
        Notification.emit(
          trans.__('%1: %2', isolated(short), finding.message),
          TYPES[finding.severity],
          {
            autoClose: finding.severity === 'critical' ? false : 8000,
            actions: actions(app, service.open(run), finding, trans)
          }
        );
      }
    }, service);
  }
};

/** What a run is called, also before the list of runs is there. */
async function nameOf(
  service: ITdbgService,
  run: string,
  trans: TranslationBundle
): Promise<string> {
  const known = service.runs.get(run);
  return known
    ? nameAt(known.name, service.runs.where(run), trans)
    : service.client.run(run).then(
        ({ name }) => name,
        () => run
      );
}

/** What one may do about a finding. */
function actions(
  app: JupyterFrontEnd,
  run: RunModel,
  finding: IFinding,
  trans: TranslationBundle
): Notification.IAction[] {
  const { commands } = app;
  const list: Notification.IAction[] = [
    {
      label: trans.__('Rules'),
      caption: trans.__('Show all findings of the run'),
      callback: () => {
        void commands.execute(CommandIDs.openRules, { run: run.id });
      }
    }
  ];
  if (finding.view || finding.tensor) {
    list.unshift({
      label: trans.__('Show me'),
      caption: trans.__('Open the picture that shows it'),
      displayType: 'accent',
      callback: () => {
        void showFinding(commands, run, finding);
      }
    });
  }
  return list;
}

export default plugin;
