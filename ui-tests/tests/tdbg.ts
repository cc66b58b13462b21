/** What the browser tests do over and over, in the words of a user. */
import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { APIRequestContext, Locator, Page } from '@playwright/test';
import { expect } from '@playwright/test';
import type { ChildProcess } from 'child_process';
import { spawn } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

/** The root directory of the server under test. */
export const WORK = path.resolve(__dirname, '..', 'work');
const EXAMPLES = path.resolve(__dirname, '..', '..', 'examples');
const IMAGES = path.resolve(__dirname, '..', '..', 'docs', 'images');

/** For what needs a kernel, a process or PyTorch to start, ms. */
export const SLOW = 120_000;

/** What earlier tests left: beside the root directory, so that moving there is one step of the file system. */
const GONE = path.resolve(__dirname, '..', 'gone');

/**
 * Remove every run and notebook of earlier tests.
 *
 * A kernel that a failed test left is ended first. What then still writes, such as the sampler and the rules
 * of a killed training, finds its run gone and ends, as after any deletion: runs are moved away in one step,
 * for a folder that is being written to cannot be removed reliably.
 *
 * @param server - requests to the server under test
 */
export async function clearWork(server: APIRequestContext): Promise<void> {
  await endKernels(server);
  fs.mkdirSync(WORK, { recursive: true });
  const away = path.join(GONE, String(Date.now()));
  fs.mkdirSync(away, { recursive: true });
  for (const entry of fs.readdirSync(WORK)) {
    fs.renameSync(path.join(WORK, entry), path.join(away, entry));
  }
  try {
    fs.rmSync(GONE, { recursive: true, force: true });
  } catch {
    // A last file came into it just now: it goes the next time.
  }
}

/** End the kernels that are running; the server answers when they are gone. */
async function endKernels(server: APIRequestContext): Promise<void> {
  const listed = await server.get('/api/sessions');
  expect(listed.ok(), 'the server lists its sessions').toBe(true);
  for (const { id } of await listed.json()) {
    await server.delete(`/api/sessions/${id}`);
  }
}

/** Train `examples/script.py` in a process of its own; its run is `runs/NAME`. */
export function trainScript(name: string, epochs: number): ChildProcess {
  fs.copyFileSync(
    path.join(EXAMPLES, 'script.py'),
    path.join(WORK, 'script.py')
  );
  return train('script.py', '--store', `runs/${name}`, '--epochs', `${epochs}`);
}

/** Train `dying.py` until it is killed; its run is `runs/NAME`. */
export function trainDying(name: string): ChildProcess {
  return train(path.join(__dirname, 'dying.py'), `runs/${name}`);
}

/** Train as long as the test lasts with what browser and server leave of a small machine, as on one of its own. */
function train(...command: string[]): ChildProcess {
  return spawn('nice', ['python', ...command], {
    cwd: WORK,
    stdio: 'inherit',
    env: { ...process.env, OMP_NUM_THREADS: '1' }
  });
}

/** Kill processes and wait until they are gone. */
export async function kill(processes: ChildProcess[]): Promise<void> {
  for (const process of processes.splice(0)) {
    if (process.exitCode === null && process.signalCode === null) {
      const gone = new Promise(resolve => process.once('exit', resolve));
      process.kill('SIGKILL');
      await gone;
    }
  }
}

/** Wait for a process to end by itself, and well. */
export async function finished(process: ChildProcess): Promise<void> {
  const code =
    process.exitCode ??
    (await new Promise(resolve => process.once('exit', resolve)));
  expect(code, 'the training script ends well').toBe(0);
}

/**
 * Open one of the examples and run all its cells, without waiting for them.
 *
 * @param epochs - how long it trains; as the example says when left out
 */
export async function runNotebook(
  page: IJupyterLabPageFixture,
  name: string,
  epochs?: number
): Promise<void> {
  const source = fs.readFileSync(path.join(EXAMPLES, name), 'utf-8');
  const given =
    epochs === undefined
      ? source
      : source.replace(
          /(TDBG_EXAMPLE_EPOCHS\\", \\")\d+/,
          (_, before: string) => `${before}${epochs}`
        );
  fs.writeFileSync(path.join(WORK, name), given);
  await page.evaluate(async file => {
    const { commands } = window.jupyterapp;
    const opened = await commands.execute('docmanager:open', {
      path: file,
      kernel: { name: 'python3' }
    });
    const { sessionContext } = opened.context;
    await sessionContext.ready;
    await sessionContext.session.kernel.info;
  }, name);
  await page.getByRole('menuitem', { name: 'Run', exact: true }).click();
  await page.getByText('Run All Cells', { exact: true }).click();
  await expect(
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="busy"]')
  ).toBeVisible({ timeout: SLOW });
}

/** Show the side bar; answers it. */
export async function openSidebar(
  page: IJupyterLabPageFixture
): Promise<Locator> {
  const tab = page.getByRole('tab', { name: 'Tensor Debugger' }).first();
  await tab.waitFor();
  if ((await tab.getAttribute('aria-selected')) !== 'true') {
    await tab.click();
  }
  const bar = page.getByRole('region', {
    name: 'Tensor Debugger',
    exact: true
  });
  await expect(bar.getByText('Live', { exact: true })).toBeVisible();
  return bar;
}

/** The row of a run in the side bar. */
export function runRow(bar: Locator, run: string): Locator {
  return bar
    .getByRole('listbox', { name: 'Runs' })
    .getByRole('option')
    .filter({ has: bar.page().getByText(run, { exact: true }) });
}

/** Choose a run in the side bar and open its dashboard; answers the dashboard. */
export async function openDashboard(
  page: IJupyterLabPageFixture,
  run: string
): Promise<Locator> {
  const bar = await openSidebar(page);
  await runRow(bar, run).click({ timeout: SLOW });
  await bar.getByRole('button', { name: 'Open dashboard' }).last().click();
  const panel = dashboard(page, run);
  await expect(panel).toBeVisible();
  return panel;
}

/** Press Tab until the element has the focus. */
export async function tabTo(target: Locator, most = 60): Promise<void> {
  const { keyboard } = target.page();
  let node = await target.elementHandle();
  for (let presses = 0; presses < most; presses++) {
    // Found once: to find something by its role takes most of a second in a page so full.
    if (!(await node?.evaluate(found => found.isConnected))) {
      node = await target.elementHandle();
    }
    if (await node?.evaluate(found => found === document.activeElement)) {
      return;
    }
    await keyboard.press('Tab');
  }
  await expect(target, 'is reached by Tab').toBeFocused();
}

/** The dashboard of a run. */
export function dashboard(page: Pick<Page, 'getByRole'>, run: string): Locator {
  return page
    .getByRole('tabpanel', { name: run, exact: true })
    .filter({ has: page.getByRole('toolbar', { name: 'Run toolbar' }) });
}

/** The bar over a dashboard. */
export function runToolbar(panel: Locator): Locator {
  return panel.getByRole('toolbar', { name: 'Run toolbar' });
}

/** The slider of the step cursor over a dashboard. */
export function stepSlider(panel: Locator): Locator {
  return runToolbar(panel).getByRole('slider', { name: 'Step' });
}

/** The step that the bar over a dashboard tells; -1 while it tells none. */
export async function stepOf(panel: Locator): Promise<number> {
  const text = await stepSlider(panel).getAttribute('aria-valuetext');
  const digits = (text ?? '').replace(/\D/g, '');
  return digits ? Number(digits) : -1;
}

/** Wait until the run has gone on from `step`. */
export async function goesOn(panel: Locator, step: number): Promise<void> {
  await expect
    .poll(() => stepOf(panel), { message: 'the step grows', timeout: SLOW })
    .toBeGreaterThan(step);
}

/** A picture of a dashboard, by its title. */
export function picture(panel: Locator, title: string | RegExp): Locator {
  return panel.getByRole('tabpanel', { name: title });
}

/** Wait until at least `count` pictures are drawn. */
export async function picturesDrawn(
  panel: Locator,
  count: number
): Promise<void> {
  await expect
    .poll(() => panel.locator('.plot-container').count(), {
      message: 'pictures are drawn',
      timeout: SLOW
    })
    .toBeGreaterThanOrEqual(count);
}

/** What a picture tells of itself. */
export interface IDrawn {
  /** Where its x axis ends. */
  readonly end: number;
  /** The step it was asked for; null for the latest. */
  readonly step: number | null;
  /** The steps that its cursor lines mark, rounded. */
  readonly marked: ReadonlyArray<number>;
  /** Number of lines that it draws itself, without the host. */
  readonly shapes: number;
}

/** Read what is really drawn out of Plotly and the page. */
export function drawn(where: Locator): Promise<IDrawn> {
  return where
    .locator('.js-plotly-plot')
    .first()
    .evaluate(plot => {
      interface IAxis {
        range: number[];
        _offset: number;
        p2d(pixel: number): number;
      }
      const { _fullLayout: layout } = plot as unknown as {
        _fullLayout: {
          xaxis: IAxis;
          shapes?: unknown[];
          meta?: { tdbg?: { step?: number | null } };
        };
      };
      const lines = plot.parentElement?.querySelectorAll<HTMLElement>(
        '.jp-TdbgFigure-cursor:not([hidden])'
      );
      return {
        end: Number(layout.xaxis?.range[1]),
        step: layout.meta?.tdbg?.step ?? null,
        marked: [...(lines ?? [])].map(line =>
          Math.round(
            layout.xaxis.p2d(parseFloat(line.style.left) - layout.xaxis._offset)
          )
        ),
        shapes: layout.shapes?.length ?? 0
      };
    });
}

/**
 * Wait until pictures mark the step that the bar over the dashboard tells.
 *
 * Bar and pictures follow the hand each at its own pace: all are read again until they agree.
 *
 * @param most - the step that the bar must not be beyond, when it is known to go back
 * @returns the step
 */
export async function marked(
  panel: Locator,
  pictures: ReadonlyArray<Locator>,
  most = Infinity
): Promise<number> {
  let step = -1;
  await expect
    .poll(
      async () => {
        step = await stepOf(panel);
        const all = await Promise.all(pictures.map(drawn));
        const found = all.map(each => each.marked.join());
        const ends = all.map(each => `(axis to ${each.end})`);
        return step <= most && found.every(each => each === `${step}`)
          ? 'in step'
          : `the bar at ${step}, pictures at ${found.join(', ')} ${ends.join(', ')}`;
      },
      { timeout: SLOW }
    )
    .toBe('in step');
  return step;
}

/** Drag across a picture, from one share of its width to another; answers the ends, in the units of its x axis. */
export async function brush(
  where: Locator,
  from: number,
  to: number
): Promise<[number, number]> {
  await where.scrollIntoViewIfNeeded();
  const plot = where.locator('.js-plotly-plot').first();
  const area = (await plot.locator('.nsewdrag').first().boundingBox())!;
  const [left, right] = [from, to].map(share => area.x + share * area.width);
  const ends = await plot.evaluate(
    (node, pixels) => {
      const { xaxis } = (
        node as unknown as {
          _fullLayout: { xaxis: { p2d(pixel: number): number } };
        }
      )._fullLayout;
      return pixels.map(pixel => xaxis.p2d(pixel));
    },
    [left - area.x, right - area.x]
  );
  const { mouse } = where.page();
  const y = area.y + area.height / 2;
  await mouse.move(left, y);
  await mouse.down();
  await mouse.move((left + right) / 2, y, { steps: 3 });
  await mouse.move(right, y, { steps: 3 });
  await mouse.up();
  return [ends[0], ends[1]];
}

/** Wait until a picture reaches farther to the right than now. */
export async function grows(where: Locator): Promise<void> {
  const { end } = await drawn(where);
  await expect
    .poll(async () => (await drawn(where)).end, {
      message: 'the picture grows',
      timeout: SLOW
    })
    .toBeGreaterThan(end);
}

/** How light the labels below a picture are: 0 for black, 255 for white. */
export function labelLightness(where: Locator): Promise<number> {
  return where
    .locator('.js-plotly-plot')
    .first()
    .evaluate(plot => {
      // Found and read at once: a live picture replaces its labels all the time.
      const label = plot.querySelector('.xtick text');
      const fill = label ? getComputedStyle(label).fill : '';
      const [red, green, blue] = (fill.match(/[\d.]+/g) ?? []).map(Number);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    });
}

/**
 * Keep a picture as documentation, when asked for by TDBG_UPDATE_IMAGES=1.
 *
 * @param part - what of the page to keep; all of it when left out
 */
export async function keepPicture(
  page: IJupyterLabPageFixture,
  name: string,
  part?: Locator
): Promise<void> {
  if (process.env.TDBG_UPDATE_IMAGES) {
    fs.mkdirSync(IMAGES, { recursive: true });
    await page.mouse.move(0, 0);
    await (part ?? page).screenshot({
      path: path.join(IMAGES, `${name}.png`),
      style: '.Toastify { visibility: hidden }'
    });
  }
}
