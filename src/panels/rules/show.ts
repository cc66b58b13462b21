/**
 * What is done about a finding, from wherever it is shown.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { describeError } from '../../api/client';
import type { IFinding } from '../../api/wire';
import { CommandIDs } from '../../commands';
import { fixWords } from '../../model/rules';
import type { RunModel } from '../../model/run';
import type { ITdbgService } from '../../tokens';

/** Open the picture that shows a finding, at the step where it began. */
export async function showFinding(
  commands: CommandRegistry,
  run: RunModel,
  finding: IFinding
): Promise<void> {
  const { view, tensor } = finding;
  // Of a run that nobody looks at, the steps that the cursor could go to are unknown or old.
  if (!run.isRetained || run.detail === null) {
    await run.refresh();
  }
  run.cursor.set(finding.step_first);
  if (view) {
    await commands.execute(CommandIDs.openView, {
      run: run.id,
      view: view.name,
      params: view.params
    });
  } else if (tensor) {
    await commands.execute(CommandIDs.showTensor, { run: run.id, tensor });
  }
}

/** Ask the running training to apply the fix of a finding; tells how that went. */
export async function applyFix(
  service: ITdbgService,
  run: RunModel,
  finding: IFinding,
  trans: TranslationBundle
): Promise<void> {
  try {
    await service.client.fix(run.id, finding.id);
    void run.refresh(); // says that it was asked for, so that nobody asks twice
    const words = finding.fix ? fixWords(finding.fix) : '';
    Notification.info(trans.__('Asked the training to apply: %1', words), {
      autoClose: 6000
    });
  } catch (error) {
    Notification.error(describeError(error), { autoClose: 8000 });
  }
}
