/**
 * Reports: written on request, opened in a tab, saved.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { CommandIDs } from '../commands';
import { logoIcon } from '../icons';
import type { ReportModel } from '../model/report';
import type { RunModel } from '../model/run';
import { isolated, runName } from '../panels/name';
import { ReportPage, savePage } from '../panels/report';
import { ITdbgService } from '../tokens';
import { RUN_ARGS, attempt, targetRun } from './target';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:report',
  description: 'Writes, opens and saves reports on runs.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, ICommandPalette, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    labShell: ILabShell | null
  ): void => {
    const { commands, shell } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    const describedBy = { args: { type: 'object', properties: RUN_ARGS } };
    const target = (args: ReadonlyPartialJSONObject): RunModel | undefined => {
      const id = targetRun(app, service, args);
      return id === undefined ? undefined : service.open(id);
    };
    const written = (args: ReadonlyPartialJSONObject): boolean =>
      target(args)?.report.state === 'done';
    const refresh = (): void => {
      commands.notifyCommandChanged(CommandIDs.openReport);
      commands.notifyCommandChanged(CommandIDs.saveReport);
      commands.notifyCommandChanged(CommandIDs.saveReportNotebook);
    };
    service.currentChanged.connect(refresh, service);

    commands.addCommand(CommandIDs.writeReport, {
      label: trans.__('Write Report'),
      caption: trans.__(
        'Write all about the run into one page that needs no network'
      ),
      describedBy,
      isEnabled: args => targetRun(app, service, args) !== undefined,
      execute: async args => {
        const run = target(args);
        if (!run) {
          return;
        }
        run.report.changed.connect(refresh, service);
        // The side bar tells how far it is.
        service.setCurrent(run.id);
        await commands.execute(CommandIDs.showSidebar);
        await run.report.start();
      }
    });
    commands.addCommand(CommandIDs.openReport, {
      label: trans.__('Open Report'),
      caption: trans.__('Open the report that was written in a tab'),
      describedBy,
      isEnabled: written,
      isVisible: () => labShell !== null, // elsewhere there are no tabs: it can be downloaded
      execute: args =>
        attempt(async () => {
          const run = target(args);
          if (!run) {
            return;
          }
          const label = trans.__('Report on %1', isolated(runName(run, trans)));
          const content = new ReportPage(await run.report.page(), label);
          const tab = new MainAreaWidget({ content });
          tab.title.label = label;
          tab.title.icon = logoIcon;
          tab.title.closable = true;
          shell.add(tab, 'main');
          shell.activateById(tab.id);
        }, trans)
    });
    const addDownload = (
      command: string,
      label: string,
      caption: string,
      save: (report: ReportModel, file: string) => Promise<void>
    ): void => {
      commands.addCommand(command, {
        label,
        caption,
        describedBy,
        isEnabled: written,
        execute: args =>
          attempt(async () => {
            const report = target(args)?.report;
            if (report?.result) {
              await save(report, report.result.file);
            }
          }, trans)
      });
    };
    addDownload(
      CommandIDs.saveReport,
      trans.__('Download Report'),
      trans.__('Save the report that was written as a file'),
      async (report, file) => savePage(await report.page(), file)
    );
    addDownload(
      CommandIDs.saveReportNotebook,
      trans.__('Download Report as Notebook'),
      trans.__(
        'Save the report that was written as a notebook, with the code of its figures'
      ),
      async (report, file) =>
        savePage(await report.notebook(), file.replace(/\.html$/, '.ipynb'))
    );
    if (palette) {
      const category = trans.__('Tensor Debugger');
      [
        CommandIDs.writeReport,
        CommandIDs.openReport,
        CommandIDs.saveReport,
        CommandIDs.saveReportNotebook
      ].forEach(command => palette.addItem({ command, category }));
    }
  }
};

export default plugin;
