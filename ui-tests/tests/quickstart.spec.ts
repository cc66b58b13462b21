/** The main job: the quickstart, watched live while its training cell is still running. */
import { expect, test } from '@jupyterlab/galata';

import {
  clearWork,
  dashboard,
  figuresDrawn,
  keepPicture,
  openDashboard,
  runNotebook,
  stepOf
} from './tdbg';

test.beforeEach(() => clearWork());

test('the quickstart is seen live in the sidebar, the dashboard and inline, and after a reload', async ({
  page
}) => {
  await runNotebook(page, 'quickstart.ipynb');

  // Inline, below its cell, while later cells are still to come.
  const inline = page.locator('.jp-Cell .plot-container');
  await expect(inline.first()).toBeVisible({ timeout: 90_000 });
  const busy = page.locator('.jp-Notebook-ExecutionIndicator[data-status="busy"]');
  await expect(busy).toBeVisible();

  const panel = await openDashboard(page, 'quickstart');
  await figuresDrawn(panel, 5);
  const before = await stepOf(panel);
  await expect.poll(() => stepOf(panel)).toBeGreaterThan(before);
  await expect(panel.getByText('live').first()).toBeVisible();
  await expect(
    panel.getByRole('img', { name: /^PCA of \d+ points of latent/ })
  ).toBeVisible({ timeout: 60_000 });
  await expect(panel.getByRole('tab', { name: 'Timeline' })).toBeVisible();
  await expect(panel.getByText('Dead relu').first()).toBeVisible();
  await keepPicture(page, 'dashboard-light');

  // Holding the cursor: every picture shows that moment, and the run goes on.
  await panel.getByRole('button', { name: 'Follow the run' }).first().click();
  const held = await stepOf(panel);
  await page.waitForTimeout(2000);
  expect(await stepOf(panel)).toBe(held);
  await panel.getByRole('button', { name: 'Follow the run' }).first().click();
  await expect.poll(() => stepOf(panel)).toBeGreaterThan(held);

  await page.theme.setDarkTheme();
  await page.waitForTimeout(1500);
  const text = panel.locator('.plot-container text').first();
  const fill = await text.evaluate(node => getComputedStyle(node).fill);
  const [red] = (fill.match(/\d+/g) ?? ['0']).map(Number);
  expect(red, `text on the dark theme is light, found ${fill}`).toBeGreaterThan(120);
  await keepPicture(page, 'dashboard-dark');
  await page.theme.setLightTheme();

  // A reload in mid-run brings everything back, live.
  await page.reload({ waitForIsReady: false });
  const again = dashboard(page, 'quickstart');
  await page.getByRole('tab', { name: 'quickstart', exact: true }).first().click();
  await figuresDrawn(again, 4);
  const resumed = await stepOf(again);
  await expect.poll(() => stepOf(again)).toBeGreaterThan(resumed);

  // To the end: the run finishes by itself.
  await expect(again.getByText('finished').first()).toBeVisible({
    timeout: 180_000
  });
});
