import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { expect, it } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RulesModel } from '../rules/model';
import { RuleRecheck } from '../rules/recheck';

it('calls a threshold that the server does not take as its field does, and marks the field', async () => {
  const client = new FakeServer();
  client.ruleList = { ...client.ruleList, findings: [finding()] };
  client.catalogue = [
    {
      name: 'dead_relu',
      title: 'Dead ReLU',
      group: 'tensors',
      explanation: '',
      thresholds: ['threshold_layer', 'patience'].map(name => ({
        name,
        type: 'float',
        default: 1,
        help: ''
      }))
    }
  ];
  client.recheck = () =>
    Promise.reject(
      new Error(
        'dead_relu.threshold_layer is 5.0; expected a number at most 1.'
      )
    );
  const service = new TdbgService({ client, stream: new FakeStream() });
  const run = service.open('a');
  run.retain();
  await settle();
  const model = new RulesModel({ run, service });
  const body = new RuleRecheck({
    model,
    trans: nullTranslator.load('tdbg_lab')
  });
  await act(async () => {
    Widget.attach(body, document.body);
    await settle();
  });
  await act(async () => {
    body.node.querySelector('form')?.requestSubmit();
    await settle();
  });
  expect(body.node.querySelector('[role="alert"]')?.textContent).toBe(
    'Threshold layer is 5.0; expected a number at most 1.'
  );
  const marked = [...body.node.querySelectorAll('[aria-invalid="true"]')];
  expect(
    marked.map(
      field => body.node.querySelector(`[for="${field.id}"]`)?.textContent
    )
  ).toEqual(['Threshold layer']);
  await act(async () => body.dispose());
  model.dispose();
  service.dispose();
});
