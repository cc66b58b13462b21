/**
 * Links to pictures: opens what the address of the page asks for.
 */
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, IRouter } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../commands';
import { LINK_PATTERN, readLink, withoutLink } from '../model/link';
import { ITdbgService } from '../tokens';
import { attempt } from './target';

/** Most letters of a link that are told again. */
const MOST_QUOTED = 30;

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'tdbg-lab:link',
  description: 'Opens the pictures that links lead to.',
  autoStart: true,
  requires: [ITdbgService],
  optional: [ITranslator, ILabShell, IRouter],
  activate: (
    app: JupyterFrontEnd,
    service: ITdbgService,
    translator: ITranslator | null,
    labShell: ILabShell | null,
    router: IRouter | null
  ): void => {
    if (!labShell || !router) {
      return;
    }
    const { commands } = app;
    const trans = (translator ?? nullTranslator).load('tdbg_lab');
    commands.addCommand(CommandIDs.followLink, {
      label: trans.__('Open What the Address Asks For'),
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () =>
        attempt(async () => {
          // As it is now: JupyterLab changes it on the way here where it asks for a reset.
          const { request, search } = router.current;
          const link = readLink(search ?? '');
          if (!link) {
            return;
          }
          // A reload shall restore what is open then, rather than open this again.
          router.navigate(withoutLink(request), { skipRouting: true });
          await app.restored;
          const { run, open, params } = link;
          if (await service.isGone(run)) {
            throw new Error(
              trans.__(
                'The link leads to the run %1, which is not among the runs of this server.',
                run
              )
            );
          }
          if (open === 'dashboard') {
            await commands.execute(CommandIDs.openDashboard, { run });
          } else if (open === 'rules') {
            await commands.execute(CommandIDs.openRules, { run });
          } else {
            const isRead = typeof params !== 'string';
            await commands.execute(CommandIDs.openView, {
              run,
              view: open,
              params: isRead ? params : {}
            });
            if (!isRead) {
              Notification.warning(
                trans.__(
                  'The link asks for %1, which is not JSON like {"step": 10}: defaults are shown, change them above the picture.',
                  params.slice(0, MOST_QUOTED)
                ),
                { autoClose: 10_000 }
              );
            }
          }
        }, trans)
    });
    router.register({ command: CommandIDs.followLink, pattern: LINK_PATTERN });
  }
};

export default plugin;
