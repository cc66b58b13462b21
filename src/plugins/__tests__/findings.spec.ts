import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { expect, it } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import plugin from '../findings';

it('calls a run by its name, also before the list of runs is there', async () => {
  const stream = new FakeStream();
  const service = new TdbgService({ client: new FakeServer(), stream });
  void plugin.activate({} as JupyterFrontEnd, service, nullTranslator);
  stream.say({ type: 'finding', run: 'a', finding: finding() });
  await settle();
  expect(Notification.manager.notifications.map(n => n.message)).toEqual([
    'first: Half of relu1 is dead.'
  ]);
  service.dispose();
});
