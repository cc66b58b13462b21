/** A network whose ReLUs die: the finding shows, and the run stops by itself. */
import { expect, test } from '@jupyterlab/galata';

import { clearWork, keepPicture, openDashboard, runNotebook } from './tdbg';

test.beforeEach(() => clearWork());

test('the broken notebook is found out and stops by itself', async ({ page }) => {
  await runNotebook(page, 'broken.ipynb');

  await expect(
    page.locator('.jp-OutputArea-output', { hasText: 'Training stopped at step' }).first()
  ).toBeVisible({ timeout: 120_000 });
  await expect(page.locator('.jp-OutputArea-output', { hasText: 'Traceback' })).toHaveCount(0);

  const panel = await openDashboard(page, 'broken');
  await expect(panel.getByText('stopped').first()).toBeVisible();
  await expect(panel.getByText('critical').first()).toBeVisible();
  await panel.getByRole('button', { name: 'Show me' }).first().click();
  await expect(
    panel.getByRole('tab', { name: /Histogram over steps: activation\// }).first()
  ).toBeVisible();
  await page.waitForTimeout(1500);
  await keepPicture(page, 'broken');
});
