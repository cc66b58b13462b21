/**
 * The profile of the next steps: the button that asks for it, how far it is, and what shows it.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import { CommandIDs } from '../../commands';
import type { ProfilingModel } from '../../model/profiling';
import type { RunModel } from '../../model/run';
import { useSignals } from '../signals';

/** What both parts need. */
export interface IProfilingProps {
  readonly run: RunModel;
  readonly commands: CommandRegistry;
  readonly trans: TranslationBundle;
}

/** The button, while the training goes on. */
export function ProfileButton(props: IProfilingProps): JSX.Element | null {
  const { run, commands, trans } = props;
  useSignals(run.profiling.changed);
  if (run.summary?.status !== 'running') {
    return null;
  }
  return (
    <button
      className="jp-TdbgButton"
      disabled={run.profiling.isBusy}
      title={trans.__(
        'Record operators and Python functions of the next steps, while the training goes on'
      )}
      onClick={() => {
        void commands.execute(CommandIDs.profileRun, { run: run.id });
      }}
    >
      {trans.__('Profile the next steps')}
    </button>
  );
}

/** How far it is; the views that show it, once it is there. */
export function ProfileState(props: IProfilingProps): JSX.Element | null {
  const { run, commands, trans } = props;
  const { profiling } = run;
  useSignals(profiling.changed);
  const { state } = profiling;
  if (state === 'idle') {
    return null;
  }
  if (state !== 'ready') {
    const failed = state === 'refused' || state === 'failed';
    return (
      <p
        className={failed ? 'jp-TdbgRun-error' : 'jp-TdbgRun-note'}
        role={failed ? 'alert' : 'status'}
      >
        {profileWord(profiling, trans)}
      </p>
    );
  }
  const open = (view: string) => (): void => {
    void commands.execute(CommandIDs.openView, {
      run: run.id,
      view
    });
  };
  return (
    <div className="jp-TdbgRun-actions" role="status">
      <span>{profileWord(profiling, trans)}</span>
      <button className="jp-TdbgButton" onClick={open('flame')}>
        {trans.__('Flame graph')}
      </button>
      <button className="jp-TdbgButton" onClick={open('operators')}>
        {trans.__('Operators')}
      </button>
    </div>
  );
}

/** One sentence on where a profile stands. */
export function profileWord(
  profiling: Pick<ProfilingModel, 'state' | 'message'>,
  trans: TranslationBundle
): string {
  switch (profiling.state) {
    case 'idle':
      return '';
    case 'requested':
      return trans.__('Profile requested: it begins with the next step.');
    case 'recording':
      return trans.__('Profile: recording steps…');
    case 'saving':
      return trans.__('Profile recorded: preparing the views…');
    case 'ready':
      return trans.__('Profile ready:');
    case 'refused':
    case 'failed':
      return profiling.message
        ? trans.__('Profile: %1', profiling.message)
        : trans.__('The training ended before it could be profiled.');
  }
}
