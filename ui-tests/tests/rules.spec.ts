/** The rules panel, on a training that breaks while it is watched. */
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import { expect, test } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import type { ChildProcess } from 'child_process';

import {
  SLOW,
  clearWork,
  drawn,
  keepPicture,
  kill,
  openSidebar,
  runRow,
  tabTo,
  trainDying
} from './tdbg';

const running: ChildProcess[] = [];

test.beforeEach(({ request }) => clearWork(request));

test.afterEach(() => kill(running));

/** The badge of findings in the status bar. */
function statusBadge(page: IJupyterLabPageFixture): Locator {
  return page
    .locator('#jp-main-statusbar')
    .getByRole('button', { name: /critical/ });
}

test('what breaks is told live, shown, muted, put right, and checked again with another threshold', async ({
  page
}) => {
  running.push(trainDying('dying'));
  const bar = await openSidebar(page);
  await runRow(bar, 'dying').click({ timeout: SLOW });

  // It is told: by a notification, in the status bar, and beside the layer.
  const toast = page
    .locator('.Toastify__toast')
    .filter({ hasText: 'are dead' });
  await expect(toast.first()).toBeVisible({ timeout: SLOW });
  await expect(statusBadge(page)).toBeVisible({ timeout: SLOW });
  await bar
    .getByRole('searchbox', { name: 'Search layers and tensors' })
    .fill('1 output');
  const badge = bar
    .getByRole('treeitem', { name: /output/ })
    .getByRole('img', { name: /the worst: critical/ });
  await expect(badge.first()).toHaveAttribute('title', /are dead/, {
    timeout: SLOW
  });

  // From the status bar to the panel: the worst rule first, by word, with its first step.
  await statusBadge(page).click();
  const panel = page.getByRole('tabpanel', { name: 'Rules', exact: true });
  const row = panel.getByRole('row').filter({ hasText: 'Dead ReLU' });
  await expect(row).toContainText('issue found', { timeout: SLOW });
  await expect(row).toContainText('critical');
  await expect(
    row.getByRole('img', { name: /^Findings at steps 1\d\d/ })
  ).toBeVisible();
  const detail = panel.getByRole('group', { name: 'Rule: Dead ReLU' });
  const finding = detail
    .getByRole('list', { name: 'Findings' })
    .getByRole('listitem')
    .first();
  await expect(finding).toContainText('units');
  await expect(
    finding.getByRole('list', { name: 'What to do' }).getByRole('listitem')
  ).not.toHaveCount(0);

  // Its evidence is drawn beside it, in both themes.
  const evidence = panel.locator('.jp-TdbgRules-evidence .plot-container');
  await expect(evidence).toBeVisible({ timeout: SLOW });
  await page
    .getByRole('tab', { name: 'Launcher' })
    .locator('.lm-TabBar-tabCloseIcon')
    .click();
  await keepPicture(page, 'rules-light', panel);
  await page.theme.setDarkTheme();
  await expect(evidence).toBeVisible();
  await keepPicture(page, 'rules-dark', panel);
  await page.theme.setLightTheme();

  // The picture opens at the step where the trouble began.
  await finding.getByRole('button', { name: 'Show me' }).click();
  const shown = page
    .getByRole('tabpanel', { name: /^Histogram over steps: activation\/1/ })
    .last();
  await expect(shown.locator('.plot-container')).toBeVisible({ timeout: SLOW });
  await expect
    .poll(async () => (await drawn(shown)).marked[0] ?? 0, { timeout: SLOW })
    .toBeGreaterThanOrEqual(100);
  await page.getByRole('tab', { name: 'Rules', exact: true }).click();

  // Mute it by the keyboard: no badge any more, and the panel says so.
  const mute = detail.getByRole('button', { name: /^(Unm|M)ute$/ });
  await row.getByRole('button', { name: 'Dead ReLU' }).focus();
  await tabTo(mute);
  await page.keyboard.press('Enter');
  await expect(row).toContainText('muted');
  await expect(statusBadge(page)).toHaveCount(0, { timeout: SLOW });
  await page.keyboard.press('Enter');
  await expect(row).not.toContainText('muted');
  await expect(statusBadge(page)).toBeVisible({ timeout: SLOW });

  // Over history with a threshold that nothing reaches, and with one that is none.
  await panel.getByText('Change thresholds and run again over history').click();
  const patience = panel.getByRole('textbox', { name: 'Patience' });
  await patience.fill('1000000');
  await panel.getByRole('button', { name: 'Run again' }).click();
  const now = panel.getByRole('group', { name: 'Now' });
  const then = panel.getByRole('group', {
    name: 'With the changed thresholds'
  });
  await expect(then).toContainText('0 findings', { timeout: SLOW });
  await expect(now).toContainText('1 finding');
  await patience.fill('a while');
  await panel.getByRole('button', { name: 'Run again' }).click();
  await expect(panel.getByRole('alert')).toContainText("Patience is 'a while'");
  await expect(patience).toHaveAttribute('aria-invalid', 'true');

  // A finding that knows its remedy: applied to the running training, it is gone.
  const fast = panel.getByRole('row').filter({ hasText: 'Too fast' });
  await fast.getByRole('button', { name: 'Too fast' }).click();
  await panel
    .getByRole('button', { name: /^Apply fix: Learning rate × 0.1/ })
    .click();
  await expect(
    page
      .locator('.Toastify__toast')
      .filter({ hasText: 'Asked the training to apply: Learning rate × 0.1' })
  ).toBeVisible();
});
