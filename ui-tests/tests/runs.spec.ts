/** Runs of plain scripts: two at once, a reload, a run that dies or is deleted, the keyboard alone. */
import { expect, test } from '@jupyterlab/galata';
import type { ChildProcess } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

import {
  SLOW,
  WORK,
  clearWork,
  dashboard,
  finished,
  goesOn,
  grows,
  openDashboard,
  openSidebar,
  picture,
  picturesDrawn,
  runRow,
  runToolbar,
  stepOf,
  trainScript
} from './tdbg';

/** More than any test waits for; the processes are killed after it. */
const ENDLESS = 100_000;

const running: ChildProcess[] = [];

/** Train in the background until the test is over. */
function train(name: string, epochs = ENDLESS): ChildProcess {
  const process = trainScript(name, epochs);
  running.push(process);
  return process;
}

test.beforeEach(() => clearWork());

test.afterEach(async () => {
  for (const process of running.splice(0)) {
    if (process.exitCode === null && process.signalCode === null) {
      const gone = new Promise(resolve => process.once('exit', resolve));
      process.kill('SIGKILL');
      await gone;
    }
  }
});

test('two runs at once are both live, also after a reload', async ({
  page
}) => {
  train('one');
  train('two');
  const one = await openDashboard(page, 'one');
  await picturesDrawn(one, 4);
  await goesOn(one, await stepOf(one));
  const two = await openDashboard(page, 'two');
  await picturesDrawn(two, 4);
  await goesOn(two, await stepOf(two));

  // The layout comes back, and what is in sight is live again.
  await page.reload({ waitForIsReady: false });
  const again = dashboard(page, 'two');
  await expect(again).toBeVisible({ timeout: SLOW });
  await picturesDrawn(again, 4);
  await expect(runToolbar(again).getByText('live')).toBeVisible();
  await goesOn(again, await stepOf(again));
  await grows(picture(again, 'Scalars'));
  await page.getByRole('tab', { name: 'one', exact: true }).click();
  await goesOn(dashboard(page, 'one'), 0);
  const bar = await openSidebar(page);
  await expect(runRow(bar, 'one').getByText('live')).toBeVisible();
  await expect(runRow(bar, 'two').getByText('live')).toBeVisible();
});

test('a killed run reads as crashed', async ({ page }) => {
  const victim = train('victim');
  const row = runRow(await openSidebar(page), 'victim');
  await expect(row.getByText('live')).toBeVisible({ timeout: SLOW });
  victim.kill('SIGKILL');
  await expect(row.getByText('crashed')).toBeVisible({ timeout: SLOW });
});

test('a run deleted under the panel is taken away with a word', async ({
  page
}) => {
  await finished(train('gone', 2));
  const panel = await openDashboard(page, 'gone');
  await picturesDrawn(panel, 4);
  fs.rmSync(path.join(WORK, 'runs', 'gone'), { recursive: true });
  const bar = await openSidebar(page);
  await expect(bar.getByText('This run was deleted')).toBeVisible({
    timeout: SLOW
  });
  await expect(bar.getByText('No runs yet')).toBeVisible();
  // What was drawn stays until its owner closes it.
  await picturesDrawn(panel, 4);
});

test('a run is found and opened by the keyboard alone', async ({ page }) => {
  const { keyboard } = page;
  await finished(train('keys', 2));

  // To the side bar by the command palette.
  await keyboard.press('Control+Shift+C');
  await expect(page.locator('.lm-CommandPalette-input')).toBeFocused();
  await keyboard.type('Show Tensor Debugger');
  await keyboard.press('Enter');
  const bar = page.getByRole('region', {
    name: 'Tensor Debugger',
    exact: true
  });
  await expect(runRow(bar, 'keys')).toBeVisible();

  // Along the side bar by Tab: filter, list, actions.
  const filter = bar.getByRole('searchbox', { name: 'Filter runs' });
  const list = bar.getByRole('listbox', { name: 'Runs' });
  const open = bar.getByRole('button', { name: 'Open dashboard' }).last();
  await tabTo(filter);
  await keyboard.type('keys');
  await tabTo(list);
  await keyboard.press('ArrowDown');
  await keyboard.press('Enter');
  await expect(open).toBeVisible();
  await tabTo(open);
  await keyboard.press('Enter');
  const panel = dashboard(page, 'keys');
  await picturesDrawn(panel, 4);

  /** Press Tab until the element has the focus. */
  async function tabTo(target: typeof open): Promise<void> {
    for (let presses = 0; presses < 60; presses++) {
      if (await target.evaluate(node => node === document.activeElement)) {
        return;
      }
      await keyboard.press('Tab');
    }
    await expect(target, 'is reached by Tab').toBeFocused();
  }
});
