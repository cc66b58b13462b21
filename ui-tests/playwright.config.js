/** Browser tests of tdbg-lab: one worker, the system's Chromium, a real JupyterLab. */
const baseConfig = require('@jupyterlab/galata/lib/playwright-config');

const port = process.env.TDBG_UI_PORT ?? '8898';
process.env.TARGET_URL ??= `http://localhost:${port}`;

module.exports = {
  ...baseConfig,
  testDir: './tests',
  timeout: 240_000,
  globalTimeout: 20 * 60_000,
  expect: { timeout: 30_000 },
  // Told as flaky, not as passed, when it takes a second time.
  retries: 1,
  workers: 1,
  reporter: [['list'], ['html', { open: 'never' }]],
  webServer: {
    // What the server says is kept apart: the last lines of the tests are for the tests.
    command:
      'jupyter lab --config jupyter_server_test_config.py > server.log 2>&1',
    url: `http://localhost:${port}/lab`,
    timeout: 120_000,
    reuseExistingServer: !process.env.CI
  },
  use: {
    ...baseConfig.use,
    video: 'off',
    trace: 'off',
    viewport: { width: 1600, height: 1000 },
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync'
      ]
    }
  }
};
