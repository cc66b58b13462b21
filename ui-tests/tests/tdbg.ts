/** What the browser tests do over and over, in the words of a user. */
import { IJupyterLabPageFixture } from '@jupyterlab/galata';
import { expect, Locator } from '@playwright/test';
import { ChildProcess, spawn } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

export const WORK = path.resolve(__dirname, '..', 'work');
const EXAMPLES = path.resolve(__dirname, '..', '..', 'examples');
const IMAGES = path.resolve(__dirname, '..', '..', 'docs', 'images');

/** Remove every run and notebook of earlier tests. */
export function clearWork(): void {
  fs.mkdirSync(WORK, { recursive: true });
  for (const entry of fs.readdirSync(WORK)) {
    fs.rmSync(path.join(WORK, entry), { recursive: true, force: true });
  }
}

export function copyExample(name: string, folder: string): void {
  fs.copyFileSync(path.join(EXAMPLES, name), path.join(folder, name));
}

/** Train `examples/script.py` in a process of its own; it writes its run below `folder`. */
export function trainScript(
  folder: string,
  store: string,
  epochs: number
): ChildProcess {
  copyExample('script.py', folder);
  return spawn(
    'python',
    ['script.py', '--store', store, '--epochs', String(epochs)],
    { cwd: folder, stdio: 'inherit' }
  );
}

/** Open a notebook of the work folder and run all its cells, without waiting for them. */
export async function runNotebook(
  page: IJupyterLabPageFixture,
  name: string
): Promise<void> {
  copyExample(name, WORK);
  await page.evaluate(async path => {
    await window.jupyterapp.commands.execute('docmanager:open', { path });
  }, name);
  // Without a saved preference JupyterLab asks for the kernel.
  const select = page.locator('.jp-Dialog').getByRole('button', { name: 'Select', exact: true });
  await page.addLocatorHandler(select, () => select.click());
  await expect(page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')).toBeVisible({
    timeout: 60_000
  });
  await page.getByRole('menuitem', { name: 'Run', exact: true }).first().click();
  await page.getByText('Run All Cells', { exact: true }).click();
}

export async function openSidebar(
  page: IJupyterLabPageFixture
): Promise<Locator> {
  const tab = page.getByRole('tab', { name: 'Tensor Debugger' }).first();
  await tab.waitFor();
  if ((await tab.getAttribute('aria-selected')) !== 'true') {
    await tab.click();
  }
  const bar = page.locator('#jp-left-stack');
  await expect(bar.getByText('Runs', { exact: true }).first()).toBeVisible();
  return bar;
}

/** Choose a run in the sidebar and open its dashboard; answers the dashboard. */
export async function openDashboard(
  page: IJupyterLabPageFixture,
  run: string
): Promise<Locator> {
  const bar = await openSidebar(page);
  await bar.getByText(run, { exact: true }).first().click({ timeout: 90_000 });
  await bar.getByRole('button', { name: 'Open dashboard' }).first().click();
  return dashboard(page, run);
}

export function dashboard(page: IJupyterLabPageFixture, run: string): Locator {
  return page
    .getByRole('tabpanel', { name: run, exact: true })
    .filter({ has: page.getByRole('toolbar', { name: 'Run toolbar' }) });
}

/** The step a run's toolbar shows. */
export async function stepOf(panel: Locator): Promise<number> {
  const slider = panel
    .getByRole('toolbar', { name: 'Run toolbar' })
    .getByRole('slider', { name: 'Step' });
  return Number(await slider.inputValue());
}

/** Wait until at least `count` figures are drawn. */
export async function figuresDrawn(
  panel: Locator,
  count: number
): Promise<void> {
  await expect
    .poll(() => panel.locator('.plot-container').count(), { timeout: 90_000 })
    .toBeGreaterThanOrEqual(count);
}

/** Keep a picture as documentation, when asked for by TDBG_UPDATE_IMAGES=1. */
export async function keepPicture(
  page: IJupyterLabPageFixture,
  name: string
): Promise<void> {
  if (process.env.TDBG_UPDATE_IMAGES) {
    fs.mkdirSync(IMAGES, { recursive: true });
    await page.screenshot({ path: path.join(IMAGES, `${name}.png`) });
  }
}
