import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import { TdbgService } from '../../model/service';
import { RulesModel } from '../rules/model';
import { RuleRecheck } from '../rules/recheck';

it('calls thresholds as their fields are called, marks one that the server does not take, and brings the answer into sight', async () => {
  const scrolledTo: Element[] = [];
  Element.prototype.scrollIntoView = function (this: Element) {
    scrolledTo.push(this);
  };
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
        help: 'Less than `threshold_layer`, as `lr` is.'
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
    await vi.waitFor(() => expect(model.isCatalogueKnown).toBe(true));
  });
  const helps = body.node.querySelectorAll('.jp-TdbgRecheck-help');
  expect(helps[1]?.textContent).toBe('Less than Threshold layer, as `lr` is.');
  await act(async () => {
    body.node.querySelector('form')?.requestSubmit();
    await vi.waitFor(() => expect(model.recheck.state).toBe('failed'));
  });
  expect(scrolledTo.pop()?.textContent).toBe(
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
