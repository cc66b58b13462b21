import { CommandRegistry } from '@lumino/commands';
import { expect, it } from 'vitest';

import { FakeServer, finding, summary } from '../../api/__tests__/fake';
import { RunModel } from '../../model/run';
import { showFinding } from '../rules/show';

it('goes to the step of a finding on a run of which only the last step is known', async () => {
  const run = new RunModel({ id: 'a', client: new FakeServer() });
  run.setSummary(summary());
  expect(run.cursor.steps).toEqual([99]);
  await showFinding(
    new CommandRegistry(),
    run,
    finding({ step_first: 10, tensor: '' })
  );
  expect(run.cursor.step).toBe(10);
  run.dispose();
});
