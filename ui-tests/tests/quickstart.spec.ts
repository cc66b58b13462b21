/** The main job: the quickstart, watched live while its training cell is still running. */
import { expect, test } from '@jupyterlab/galata';

import {
  SLOW,
  clearWork,
  dashboard,
  drawn,
  goesOn,
  grows,
  keepPicture,
  labelLightness,
  marked,
  openDashboard,
  openSidebar,
  picture,
  picturesDrawn,
  runNotebook,
  runRow,
  runToolbar,
  stepOf,
  stepSlider
} from './tdbg';

test.beforeEach(({ request }) => clearWork(request));

test('the quickstart is seen live in the side bar, the dashboard and inline', async ({
  page
}) => {
  await runNotebook(page, 'quickstart.ipynb');
  const busy = page.locator(
    '.jp-Notebook-ExecutionIndicator[data-status="busy"]'
  );

  // Inline, below its cell, while the cell after it trains.
  const inline = page
    .locator('.jp-Cell')
    .filter({ has: page.locator('.js-plotly-plot') })
    .last();
  await expect(inline).toBeVisible({ timeout: SLOW });
  await grows(inline);
  await inline.scrollIntoViewIfNeeded();
  await expect(busy).toHaveCount(1);
  // The cell alone: what is above it names a path of this machine.
  await keepPicture(page, 'inline', inline);

  // In the side bar.
  const bar = await openSidebar(page);
  const row = runRow(bar, 'quickstart');
  await expect(row.getByText('live')).toBeVisible();
  // It is open without a click, being the one that is live.
  await expect(
    bar.getByRole('button', { name: 'Open dashboard' }).last()
  ).toBeVisible();
  await expect(row.getByText(/^step [\d,]+$/)).toBeVisible();
  await expect(row.getByRole('img', { name: 'Loss over steps' })).toBeVisible();

  // All four pictures of the dashboard, and they grow.
  const panel = await openDashboard(page, 'quickstart');
  await picturesDrawn(panel, 5);
  await expect(runToolbar(panel).getByText('live')).toBeVisible();
  const histogram = picture(panel, /^Histogram over steps: activation\//);
  await grows(histogram);
  await grows(picture(panel, 'Scalars'));
  const latent = picture(panel, /^Latent space/);
  await expect(
    latent.getByRole('img', { name: /\d+ points of latent/ })
  ).toBeVisible({ timeout: SLOW });
  const timeline = picture(panel, 'Timeline');
  await expect(timeline.getByRole('img', { name: /forward/ })).toBeVisible({
    timeout: SLOW
  });
  await expect(
    panel.getByRole('row').filter({ hasText: 'Dead ReLU' })
  ).toBeVisible();
  await expect(busy).toHaveCount(1);
  await keepPicture(page, 'dashboard-light');

  // Drag the step cursor: every picture shows that moment, and the run goes on.
  const slider = stepSlider(panel);
  const box = (await slider.boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width - 8, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, y, { steps: 3 });
  await page.mouse.move(box.x + box.width * 0.4, y, { steps: 3 });
  await page.mouse.up();
  const follow = runToolbar(panel).getByRole('button', {
    name: 'Follow the run'
  });
  await expect(follow).toHaveAttribute('aria-pressed', 'false');
  const held = await marked(panel, [histogram, picture(panel, 'Scalars')]);
  expect(held).toBeGreaterThan(0);
  await expect.poll(async () => (await drawn(timeline)).step).toBe(held);
  await expect
    .poll(async () => (await drawn(latent)).step)
    .toBeLessThanOrEqual(held);
  await grows(histogram);
  expect(await stepOf(panel), 'a held cursor stays').toBe(held);
  await follow.click();
  await goesOn(panel, held);
  await expect.poll(async () => (await drawn(histogram)).marked).toEqual([]);

  // Text is readable on the dark theme.
  await expect.poll(() => labelLightness(histogram)).toBeLessThan(140);
  await page.theme.setDarkTheme();
  await expect.poll(() => labelLightness(histogram)).toBeGreaterThan(140);
  await keepPicture(page, 'dashboard-dark');
});

test('the quickstart is followed to its end, over a reload', async ({
  page
}) => {
  await runNotebook(page, 'quickstart.ipynb', 12);
  const panel = await openDashboard(page, 'quickstart');
  await picturesDrawn(panel, 4);

  // In mid-run the page is loaded again: the layout is back, and live.
  await page.reload({ waitForIsReady: false });
  const again = dashboard(page, 'quickstart');
  await expect(again).toBeVisible({ timeout: SLOW });
  await picturesDrawn(again, 4);
  await expect(runToolbar(again).getByText(/^(live|finished)/)).toBeVisible({
    timeout: SLOW
  });

  // To the end.
  await expect(runToolbar(again).getByText('finished')).toBeVisible({
    timeout: 2 * SLOW
  });
  const row = runRow(await openSidebar(page), 'quickstart');
  await expect(row.getByText('finished')).toBeVisible();
});
