/** Jupyter Notebook, whose pages have no tabs: pictures open in JupyterLab. */
import { expect, test } from '@playwright/test';

import {
  SLOW,
  clearWork,
  dashboard,
  finished,
  picturesDrawn,
  runRow,
  trainScript
} from './tdbg';

test.use({ baseURL: process.env.TARGET_URL });

test.beforeEach(({ request }) => clearWork(request));

test('the side bar of Notebook opens the dashboard of a run in JupyterLab', async ({
  page,
  context
}) => {
  await finished(trainScript('beside', 2));
  await page.goto('/tree');
  await page.getByRole('menuitem', { name: 'View' }).waitFor();
  const bar = page.getByRole('region', {
    name: 'Tensor Debugger',
    exact: true
  });
  await page.keyboard.press('Control+Shift+C');
  await expect(page.locator('.lm-CommandPalette-input')).toBeFocused();
  await page.keyboard.type('Show Tensor Debugger');
  await page.keyboard.press('Enter');
  await runRow(bar, 'beside').click();

  const opened = context.waitForEvent('page');
  await bar.getByRole('button', { name: 'Open dashboard' }).last().click();
  const lab = await opened;
  await picturesDrawn(dashboard(lab, 'beside'), 4);
  await expect(lab).toHaveURL(/\/lab(\/[^?]*)?$/); // a reload opens nothing twice

  // A link to what is gone says so.
  await lab.goto('/lab?tdbg-run=0123456789abcdef');
  await expect(lab.getByText(/run 0123456789abcdef, which is not/)).toBeVisible(
    { timeout: SLOW }
  );
});
