/** Runs of plain scripts: two at once, a reload, a run that dies or is deleted, the keyboard alone. */
import { expect, test } from '@jupyterlab/galata';
import type { ChildProcess } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

import {
  SLOW,
  WORK,
  brush,
  clearWork,
  dashboard,
  drawn,
  finished,
  goesOn,
  grows,
  kill,
  marked,
  openDashboard,
  openSidebar,
  picture,
  picturesDrawn,
  runRow,
  runToolbar,
  stepOf,
  stepSlider,
  tabTo,
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

test.beforeEach(({ request }) => clearWork(request));

test.afterEach(() => kill(running));

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

  // One picture of both goes on with them.
  await runRow(bar, 'two').click({ button: 'right' });
  await page.getByText('Draw Beside the Current Run').click();
  const both = page.getByRole('tabpanel', { name: /^one · Several runs/ });
  for (const name of ['one', 'two']) {
    const line = both.locator('.legendtext').filter({ hasText: name });
    await expect(line.first()).toBeVisible({ timeout: SLOW });
  }
  await grows(both);

  // What is chosen together is stopped together, and deleted together.
  await runRow(bar, 'one').click();
  await runRow(bar, 'two').click({ modifiers: ['ControlOrMeta'] });
  const chosen = bar.getByRole('group', { name: 'Chosen runs' });
  await expect(chosen.getByText('2 chosen')).toBeVisible();
  await chosen.getByRole('button', { name: 'Stop…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Stop 2 trainings?');
  await dialog.getByRole('button', { name: 'Stop training' }).click();
  for (const name of ['one', 'two']) {
    await expect(runRow(bar, name).getByText('stopped')).toBeVisible({
      timeout: SLOW
    });
  }
  await chosen.getByRole('button', { name: 'Delete…' }).click();
  await expect(dialog).toContainText('Delete 2 runs?');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await expect(bar.getByText('No runs yet')).toBeVisible({ timeout: SLOW });
  await expect(chosen).toHaveCount(0);
});

test('a killed run reads as crashed', async ({ page }) => {
  const victim = train('victim');
  const row = runRow(await openSidebar(page), 'victim');
  await expect(row.getByText('live')).toBeVisible({ timeout: SLOW });
  victim.kill('SIGKILL');
  await expect(row.getByText('crashed')).toBeVisible({ timeout: SLOW });

  // Beside that, a tag is told whole where others have no room.
  const id = await row.getAttribute('data-tdbg-run');
  const tags = ['slow', 'with the batches of monday', 'again'];
  await page.request.patch(`/tdbg/runs/${id}`, { data: { tags } });
  const tag = row.getByText('slow', { exact: true });
  await expect(tag).toBeInViewport({ ratio: 1 });
  expect(await tag.evaluate(node => node.scrollWidth - node.clientWidth)).toBe(
    0
  );
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
  // The meters of the machine need no run.
  const meter = (name: string) => bar.getByRole('meter', { name, exact: true });
  await expect(meter('CPU')).toHaveAttribute('aria-valuetext', /^\d+ % of /);
  await expect(meter('Memory')).toContainText(/ \/ .* [GT]B$/);
  // What was drawn stays until its owner closes it, and does not come back empty.
  await picturesDrawn(panel, 4);
  await page.reload({ waitForIsReady: false });
  await expect(bar.getByText('No runs yet')).toBeVisible({ timeout: SLOW });
  await expect(
    page.getByRole('tab', { name: 'gone', exact: true })
  ).toHaveCount(0);
  await expect(page.getByText('Run not found')).toHaveCount(0);
});

test('a run is found, profiled, opened, looked through and stopped by the keyboard alone', async ({
  page
}) => {
  const { keyboard } = page;
  train('keys');

  // To the side bar by the command palette.
  const toSideBar = async (): Promise<void> => {
    await keyboard.press('Control+Shift+C');
    await expect(page.locator('.lm-CommandPalette-input')).toBeFocused();
    await keyboard.type('Show Tensor Debugger');
    await keyboard.press('Enter');
  };
  await toSideBar();
  const bar = page.getByRole('region', {
    name: 'Tensor Debugger',
    exact: true
  });
  await expect(runRow(bar, 'keys')).toBeVisible({ timeout: SLOW });

  // It begins at the filter; along the side bar by Tab: list, actions.
  const open = bar.getByRole('button', { name: 'Open dashboard' }).last();
  await expect(
    bar.getByRole('searchbox', { name: 'Filter runs' })
  ).toBeFocused();
  await keyboard.type('keys');
  await tabTo(bar.getByRole('listbox', { name: 'Runs' }));
  await keyboard.press('ArrowDown');
  await keyboard.press('Enter');
  await expect(open).toBeVisible();

  // Some steps are profiled while the training goes on, and shown when they are there.
  const profile = bar.getByRole('button', { name: 'Profile the next steps' });
  await tabTo(profile);
  await keyboard.press('Enter');
  await expect(profile).toBeDisabled();
  await expect(bar.getByText('Profile ready:')).toBeVisible({ timeout: SLOW });
  await expect(profile).toBeEnabled();
  await tabTo(bar.getByRole('button', { name: 'Operators' }));
  await keyboard.press('Enter');
  await expect(
    page.getByRole('img', { name: /operators in steps .* takes/ })
  ).toBeVisible({ timeout: SLOW });

  await toSideBar();
  await tabTo(open);
  await keyboard.press('Enter');
  const panel = dashboard(page, 'keys');
  await picturesDrawn(panel, 4);
  await expect.poll(() => stepOf(panel), { timeout: SLOW }).toBeGreaterThan(20);

  // Along the bar of the dashboard: the cursor goes back and stays, follows again; the run stops.
  const tools = runToolbar(panel);
  const follow = tools.getByRole('button', { name: 'Follow the run' });
  await tabTo(stepSlider(panel), 3);
  await keyboard.press('ArrowLeft');
  await keyboard.press('ArrowLeft');
  await expect(follow).toHaveAttribute('aria-pressed', 'false');
  const held = await marked(panel, [picture(panel, 'Scalars')]);
  await tabTo(follow, 3);
  await keyboard.press('Enter');
  await expect(follow).toHaveAttribute('aria-pressed', 'true');
  await goesOn(panel, held);
  await tabTo(tools.getByRole('button', { name: 'Stop…' }), 3);
  await keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toContainText('Stop keys?');
  await keyboard.press('Enter');
  await expect(tools.getByText('stopped')).toBeVisible({ timeout: SLOW });
});

test('a tensor chosen in the tree is shown, the cursor is dragged in a picture, numbers are read', async ({
  page
}) => {
  await finished(train('tree', 2));
  const panel = await openDashboard(page, 'tree');
  await picturesDrawn(panel, 5);
  const bar = await openSidebar(page);

  // From the tree to the picture of the tensor.
  const tree = bar.getByRole('tree', { name: 'Layers of tree' });
  await bar
    .getByRole('searchbox', { name: 'Search layers and tensors' })
    .fill('0.weight gradient');
  await tree.getByRole('treeitem', { name: /weight gradient/ }).click();
  const histogram = picture(
    panel,
    /^Histogram over steps: gradient\/0\.weight/
  );
  await expect(histogram).toBeVisible({ timeout: SLOW });
  await expect(
    histogram.getByRole('img', { name: /gradient\/0\.weight/ })
  ).toBeVisible({ timeout: SLOW });

  // The line of the cursor, dragged in one picture, moves in all.
  const scalars = picture(panel, 'Scalars');
  await stepSlider(panel).focus();
  await page.keyboard.press('ArrowLeft');
  const line = scalars.locator('.jp-TdbgFigure-cursor:not([hidden])');
  await expect(line).toBeVisible({ timeout: SLOW });
  const before = await stepOf(panel);
  const from = (await line.boundingBox())!;
  const y = from.y + from.height / 2;
  await page.mouse.move(from.x, y);
  await page.mouse.down();
  await page.mouse.move(from.x - 60, y, { steps: 3 });
  await page.mouse.up();
  const overview = picture(panel, /^Overview of layers/);
  await marked(panel, [scalars, histogram, overview], before - 1);

  // A part of the time, brushed on the timeline, is what the other pictures over time show.
  const timeline = picture(panel, 'Timeline');
  await expect(timeline.getByRole('img', { name: /forward/ })).toBeVisible({
    timeout: SLOW
  });
  const [first, last] = await brush(timeline, 0.6, 0.9);
  const range = timeline.getByRole('group', { name: 'Range' });
  await expect(range).toContainText('Pictures over time show');
  await expect
    .poll(async () => (await drawn(timeline)).end)
    .toBeCloseTo(last, 1); // the mouse moves by whole pixels
  await page.evaluate(() =>
    window.jupyterapp.commands.execute('tdbg:open-view', { view: 'phases' })
  );
  const phases = page.getByRole('img', {
    name: / from [\d.]+ s on: .*forward /
  });
  await expect(phases).toBeVisible({ timeout: SLOW });
  const told = (await phases.getAttribute('aria-label')) ?? '';
  expect(Number(/ from ([\d.]+) s on/.exec(told)?.[1])).toBeCloseTo(first, 1);
  await page.getByRole('tab', { name: 'tree', exact: true }).click();
  await range.getByRole('button', { name: 'Back to the latest' }).click();
  await expect(range).toHaveCount(0);
  await expect
    .poll(async () => (await drawn(timeline)).end)
    .toBeGreaterThan(last);

  // The numbers of a picture as a table, and the picture again.
  const asTable = scalars.getByRole('button', { name: 'Show as table' });
  await asTable.click();
  const table = scalars.getByRole('table').first();
  await expect(table.getByRole('columnheader', { name: 'Step' })).toBeVisible();
  expect(await table.getByRole('row').count()).toBeGreaterThan(2);
  await asTable.click();
  await expect(table).toHaveCount(0);
});
