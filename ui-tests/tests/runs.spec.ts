/** Several runs from plain scripts, a run that goes away, and the keyboard alone. */
import { expect, test } from '@jupyterlab/galata';
import { ChildProcess } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

import {
  clearWork,
  figuresDrawn,
  openDashboard,
  openSidebar,
  stepOf,
  trainScript,
  WORK
} from './tdbg';

const running: ChildProcess[] = [];

test.beforeEach(() => clearWork());

test.afterEach(() => {
  running.splice(0).forEach(process => process.kill('SIGKILL'));
});

function exited(process: ChildProcess): Promise<number | null> {
  return new Promise(resolve => process.once('exit', code => resolve(code)));
}

test('two runs at once are both live', async ({ page }) => {
  running.push(trainScript(WORK, 'runs/one', 2000), trainScript(WORK, 'runs/two', 2000));
  const one = await openDashboard(page, 'one');
  await figuresDrawn(one, 4);
  const first = await stepOf(one);
  await expect.poll(() => stepOf(one)).toBeGreaterThan(first);
  const two = await openDashboard(page, 'two');
  await figuresDrawn(two, 4);
  const second = await stepOf(two);
  await expect.poll(() => stepOf(two)).toBeGreaterThan(second);
});

test('a killed run reads as crashed', async ({ page }) => {
  const victim = trainScript(WORK, 'runs/victim', 2000);
  running.push(victim);
  const bar = await openSidebar(page);
  await expect(bar.getByText('victim', { exact: true })).toBeVisible({ timeout: 60_000 });
  await bar.getByText('victim', { exact: true }).click();
  await expect(bar.getByText('live').first()).toBeVisible();
  victim.kill('SIGKILL');
  await expect(bar.getByText('crashed').first()).toBeVisible({ timeout: 60_000 });
});

test('a run deleted under the panel is taken away with a word', async ({ page }) => {
  const process = trainScript(WORK, 'runs/gone', 2);
  running.push(process);
  expect(await exited(process)).toBe(0);
  const panel = await openDashboard(page, 'gone');
  await figuresDrawn(panel, 4);
  fs.rmSync(path.join(WORK, 'runs', 'gone'), { recursive: true });
  await expect(page.getByText(/deleted|no longer|removed|gone\b.*exist/i).first()).toBeVisible({
    timeout: 30_000
  });
  const bar = await openSidebar(page);
  await expect(bar.getByText('No runs yet')).toBeVisible();
});

test('everything can be reached by the keyboard alone', async ({ page }) => {
  const process = trainScript(WORK, 'runs/keys', 2);
  running.push(process);
  expect(await exited(process)).toBe(0);
  await page.keyboard.press('Control+Shift+C');
  await page.keyboard.type('Show the Tensor Debugger');
  await page.keyboard.press('Enter');
  const bar = page.locator('#jp-left-stack');
  await expect(bar.getByText('keys', { exact: true })).toBeVisible();
  const filter = bar.getByRole('searchbox', { name: 'Filter runs' });
  await filter.focus();
  await page.keyboard.type('keys');
  await page.keyboard.press('Tab');
  await expect(page.locator(':focus')).toHaveAttribute('role', /row|option|listitem|listbox|list|grid|treeitem/);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('tab', { name: 'keys', exact: true })).toBeVisible();
  await expect(page.getByRole('toolbar', { name: 'Run toolbar' })).toBeVisible();
});
