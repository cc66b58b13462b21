/**
 * What may be done with several chosen runs at once.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import { CommandIDs } from '../../commands';
import type { ITdbgService } from '../../tokens';

/** How many are chosen, and a button for each thing to do; nothing while it is one or none. */
export function ChosenBar(props: {
  readonly service: ITdbgService;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}): JSX.Element | null {
  const { service, commands, trans } = props;
  const runs = service.chosen.all;
  if (runs.length < 2) {
    return null;
  }
  const live = runs.filter(run => run.status === 'running').length;
  const execute = (id: string) => async (): Promise<void> => {
    await commands.execute(id, { runs: runs.map(run => run.id) });
  };
  const deleteAll = async (event: React.MouseEvent): Promise<void> => {
    const list = listBeside(event.currentTarget);
    await execute(CommandIDs.deleteRun)();
    if (document.activeElement === document.body) {
      list?.focus();
    }
  };
  return (
    <div
      className="jp-TdbgChosen"
      role="group"
      aria-label={trans.__('Chosen runs')}
    >
      <button
        className="jp-TdbgIconButton"
        title={trans.__('Choose none (Escape)')}
        aria-label={trans.__('Choose none')}
        onClick={event => {
          listBeside(event.currentTarget)?.focus();
          service.chosen.clear();
        }}
      >
        <closeIcon.react tag="span" width="14px" height="14px" />
      </button>
      <span className="jp-TdbgChosen-count" role="status">
        {trans.__('%1 chosen', runs.length)}
      </span>
      <button
        className="jp-TdbgLink"
        title={trans.__('Show their losses in a picture')}
        onClick={execute(CommandIDs.compareRuns)}
      >
        {trans.__('Compare')}
      </button>
      <button className="jp-TdbgLink" onClick={execute(CommandIDs.editTags)}>
        {trans.__('Tags…')}
      </button>
      {live > 0 && (
        <button className="jp-TdbgLink" onClick={execute(CommandIDs.stopRun)}>
          {trans.__('Stop…')}
        </button>
      )}
      {live < runs.length && (
        <button className="jp-TdbgLink" onClick={deleteAll}>
          {trans.__('Delete…')}
        </button>
      )}
    </div>
  );
}

/** The list that has the focus when a button goes. */
function listBeside(button: Element): HTMLElement | null {
  return (
    button
      .closest('.jp-TdbgRuns')
      ?.querySelector<HTMLElement>('.jp-TdbgRows') ?? null
  );
}
