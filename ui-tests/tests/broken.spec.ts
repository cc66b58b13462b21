/** A network whose ReLUs die: the finding shows, and the run stops by itself. */
import { expect, test } from '@jupyterlab/galata';

import {
  SLOW,
  clearWork,
  drawn,
  keepPicture,
  openDashboard,
  picturesDrawn,
  runNotebook,
  runToolbar
} from './tdbg';

test.beforeEach(({ request }) => clearWork(request));

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
  const rule = panel
    .getByRole('row')
    .filter({ hasText: 'critical' })
    .filter({ hasText: 'Dead ReLU' });
  await rule.getByRole('button', { name: 'Dead ReLU' }).click();
  const finding = panel
    .getByRole('list', { name: 'Findings' })
    .getByRole('listitem')
    .filter({ hasText: 'critical' })
    .first();
  await expect(finding).toBeVisible();
  await expect(
    finding.getByRole('list', { name: 'What to do' }).getByRole('listitem')
  ).not.toHaveCount(0);
  await picturesDrawn(panel, 4);
  await keepPicture(page, 'broken');

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
});
