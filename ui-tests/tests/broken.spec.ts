/** A network whose ReLUs die: the finding shows, and the run stops by itself. */
import { expect, test } from '@jupyterlab/galata';

import {
  SLOW,
  clearWork,
  drawn,
  keepPicture,
  openDashboard,
  picture,
  picturesDrawn,
  runNotebook,
  runToolbar
} from './tdbg';

test.beforeEach(() => clearWork());

test('the broken notebook is found out and stops by itself', async ({
  page
}) => {
  await runNotebook(page, 'broken.ipynb');
  const outputs = page.locator('.jp-OutputArea-output');
  await expect(
    outputs.filter({ hasText: 'Training stopped at step' })
  ).toBeVisible({ timeout: SLOW });
  await expect(outputs.filter({ hasText: 'The run is stopped' })).toBeVisible({
    timeout: SLOW
  });
  await expect(outputs.filter({ hasText: 'Traceback' })).toHaveCount(0);

  const panel = await openDashboard(page, 'broken');
  await expect(runToolbar(panel).getByText('stopped')).toBeVisible();
  const finding = panel
    .getByRole('listitem')
    .filter({ hasText: 'critical' })
    .filter({ hasText: 'Dead relu' })
    .first();
  await expect(finding).toBeVisible();
  await expect(
    finding.getByRole('list', { name: 'What to do' }).getByRole('listitem')
  ).not.toHaveCount(0);
  await picturesDrawn(panel, 4);

  // From the finding to the picture that shows it, at the step where it happened.
  await finding.getByRole('button', { name: 'Show me' }).click();
  const shown = page
    .getByRole('tabpanel', { name: /^Histogram over steps: activation\/relu/ })
    .last();
  await expect(shown.locator('.plot-container')).toBeVisible();
  await finding.getByRole('button', { name: /^steps? / }).click();
  await expect
    .poll(async () => (await drawn(shown)).marked.length)
    .toBeGreaterThan(0);

  // From the tree: the layer takes the place of another in the dashboard, and is all zeros.
  await page.getByRole('tab', { name: 'broken', exact: true }).click();
  await page
    .getByRole('tree', { name: 'Layers of broken' })
    .getByRole('treeitem', { name: /^output 1/ })
    .click();
  const histogram = picture(panel, 'Histogram over steps: activation/relu1');
  await expect(
    histogram.getByRole('img', { name: /^activation\/relu1 at step/ })
  ).toBeVisible();
  await keepPicture(page, 'broken');
});
