/** Between two tests everything goes, also what is still being written to. */
import { expect, test } from '@jupyterlab/galata';
import type { ChildProcess } from 'child_process';
import * as fs from 'fs';
import * as path from 'path';

import { SLOW, WORK, clearWork, kill, trainScript } from './tdbg';

const running: ChildProcess[] = [];

test.beforeEach(({ request }) => clearWork(request));

test.afterEach(() => kill(running));

test('a run that is being written and a kernel that was left do not come into the next test', async ({
  request
}) => {
  const training = trainScript('left', 100_000);
  running.push(training);
  const run = path.join(WORK, 'runs', 'left');
  const rows = path.join(run, 'rank-00000');
  await expect
    .poll(() => (fs.existsSync(rows) ? fs.readdirSync(rows).length : 0), {
      timeout: SLOW
    })
    .toBeGreaterThan(1);
  const begun = await request.post('/api/sessions', {
    data: {
      path: 'left.ipynb',
      type: 'notebook',
      name: '',
      kernel: { name: 'python3' }
    }
  });
  expect(begun.ok()).toBe(true);

  await clearWork(request);

  expect(fs.readdirSync(WORK)).toEqual([]);
  expect(await (await request.get('/api/kernels')).json()).toEqual([]);
  await kill(running);
  await clearWork(request);
  expect(fs.readdirSync(WORK)).toEqual([]);
});
