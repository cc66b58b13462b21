/**
 * JupyterLab in a Chromium, driven by JSON lines: one command a line on stdin, one answer a line on stdout.
 *
 *   {"do": "lab", "url": "http://127.0.0.1:8888/lab?token=..."}   open JupyterLab
 *   {"do": "open", "command": "tdbg:open-dashboard", "args": {}}  execute a command of JupyterLab
 *   {"do": "watch"}                                              note from now on when which step is drawn
 *   {"do": "drawn"}                                              answer and forget what was noted
 *   {"do": "heap"}                                               collect garbage; what is then in use
 *   {"do": "profile", "seconds": 10, "path": "x.cpuprofile"}     where the page spends its time
 *   {"do": "trace", "seconds": 10, "path": "x.json"}             what every thread of the browser does
 *   {"do": "picture", "path": "x.png"}                           a screenshot
 *
 * It uses the Playwright of the browser tests, and the Chromium that CHROMIUM names.
 */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(
  new URL('../../ui-tests/package.json', import.meta.url)
);
const { chromium } = require('@playwright/test');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic']
});
const page = await browser.newPage({
  viewport: { width: 1600, height: 1000 }
});
const devtools = await page.context().newCDPSession(page);

/** Note, in the page, the moment of each drawing and the last step that is then in the picture. */
function watch() {
  /** The largest of the last x of all traces; NaN where the picture is not one over steps. */
  const lastStep = plot => {
    const ends = plot._fullData
      .map(trace => trace.x)
      .filter(x => x && x.length > 0)
      .map(x => Number(x[x.length - 1]));
    return ends.length > 0 ? Math.max(...ends) : NaN;
  };
  const notes = (window.tdbgNotes ??= []);
  const known = (window.tdbgPlots ??= new WeakSet());
  const look = () => {
    for (const plot of document.querySelectorAll(
      '.jp-TdbgFigure .js-plotly-plot'
    )) {
      const axis = plot._fullLayout?.xaxis?.title?.text;
      if (known.has(plot) || axis !== 'Step') {
        continue;
      }
      known.add(plot);
      const panel = plot.closest('.jp-TdbgView');
      plot.on('plotly_afterplot', () =>
        notes.push([
          panel?.getAttribute('aria-label') ?? '',
          performance.timeOrigin + performance.now(),
          lastStep(plot)
        ])
      );
    }
  };
  look();
  window.tdbgLook ??= setInterval(look, 250);
}

const commands = {
  lab: async ({ url }) => {
    await page.goto(url);
    await page.waitForFunction(
      () => window.jupyterapp?.commands.hasCommand('tdbg:open-dashboard'),
      null,
      { timeout: 120_000 }
    );
    await page.evaluate(() => window.jupyterapp.restored);
  },
  open: ({ command, args }) =>
    page.evaluate(
      ([id, given]) =>
        window.jupyterapp.commands.execute(id, given).then(() => null),
      [command, args]
    ),
  watch: () => page.evaluate(watch),
  drawn: () => page.evaluate(() => window.tdbgNotes.splice(0)),
  count: () =>
    page.evaluate(
      () => document.querySelectorAll('.jp-TdbgFigure .plot-container').length
    ),
  heap: async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    const counters = await devtools.send('Memory.getDOMCounters');
    return { bytes: usedSize, ...counters };
  },
  profile: async ({ seconds, path }) => {
    await devtools.send('Profiler.enable');
    await devtools.send('Profiler.start');
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    const { profile } = await devtools.send('Profiler.stop');
    writeFileSync(path, JSON.stringify(profile));
  },
  trace: async ({ seconds, path }) => {
    await browser.startTracing(page, { path });
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    await browser.stopTracing();
  },
  picture: ({ path }) => page.screenshot({ path }).then(() => null)
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    const answer = (await commands[command.do](command)) ?? null;
    process.stdout.write(`${JSON.stringify({ answer })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ error: String(error) })}\n`);
  }
}
await browser.close();
