import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import { act } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import {
  FakeServer,
  FakeStream,
  finding,
  settle
} from '../../api/__tests__/fake';
import type { IRules } from '../../api/wire';
import { TdbgService } from '../../model/service';
import { RuleDetail } from '../rules/detail';
import { RulesModel } from '../rules/model';

describe('RuleDetail', () => {
  const client = new FakeServer();
  let service: TdbgService;
  let model: RulesModel;
  let detail: RuleDetail;
  const show = async (rules: Partial<IRules>): Promise<void> => {
    client.ruleList = {
      states: [],
      findings: [],
      muted: [],
      fixes: {},
      answers: {},
      ...rules
    };
    await act(() => model.run.refresh());
  };

  beforeEach(async () => {
    service = new TdbgService({ client, stream: new FakeStream() });
    const run = service.open('a');
    run.retain();
    await settle();
    model = new RulesModel({ run, service });
    detail = new RuleDetail({
      model,
      commands: new CommandRegistry(),
      trans: nullTranslator.load('tdbg_lab')
    });
    await act(async () => Widget.attach(detail, document.body));
  });
  afterEach(async () => {
    await act(async () => detail.dispose());
    model.dispose();
    service.dispose();
  });

  it('says that no step was checked where there is none', async () => {
    await show({
      states: [
        {
          rule: 'nan',
          status: 'in_progress',
          reason: '',
          step_checked: -1,
          findings: 0,
          cost_ms: 0,
          parameters: {}
        }
      ]
    });
    await act(async () => model.choose('nan'));
    expect(detail.node.textContent).toContain('No step checked.');
    expect(detail.node.textContent).not.toMatch(/step [-−]/);
  });

  it('is no landmark: the rules of a run may stand in its dashboard, too', async () => {
    await show({ findings: [finding()] });
    const group = detail.node.querySelector('[role=group]');
    expect(group?.getAttribute('aria-label')).toMatch(/^Rule: /);
    expect(detail.node.querySelector('section')).toBeNull();
  });

  it('lists the worst of hundreds of findings, those up to the chosen one, and all on request', async () => {
    await show({
      findings: Array.from({ length: 200 }, (_, i) =>
        finding({ id: `f${i}`, step_first: i })
      )
    });
    const listed = (): number =>
      detail.node.querySelectorAll('.jp-TdbgFinding').length;
    expect(listed()).toBe(20);
    act(() => model.choose('dead_relu', 'f49'));
    expect(listed()).toBe(50);
    const more = [...detail.node.querySelectorAll('button')].pop();
    expect(more?.textContent).toBe('Show 150 more findings');
    act(() => more?.click());
    expect(listed()).toBe(200);
  });

  it('scrolls to the evidence that is folded open below the edge', async () => {
    const seen = vi.fn();
    Element.prototype.scrollIntoView = seen;
    await show({
      findings: [finding({ evidence: { share: 1 } })]
    });
    const evidence = detail.node.querySelector('details')!;
    evidence.open = true;
    await act(() => settle());
    expect(seen).toHaveBeenCalledExactlyOnceWith({ block: 'nearest' });
    evidence.open = false;
    await act(() => settle());
    expect(seen).toHaveBeenCalledTimes(1);
  });

  it('takes no second press for a fix that was asked for, and tells what became of it', async () => {
    const findings = [
      finding({ id: 'f', fix: { setting: 'learning_rate', factor: 0.1 } })
    ];
    const button = (): HTMLButtonElement | undefined =>
      [...detail.node.querySelectorAll('button')].find(one =>
        one.textContent?.startsWith('Apply fix')
      );
    const words = (): string | undefined =>
      detail.node.querySelector('.jp-TdbgFinding-foot span')?.textContent ??
      undefined;
    await show({ findings, fixes: { f: '' } });
    expect([button()?.disabled, words()]).toEqual([false, undefined]);
    client.ruleList = {
      ...client.ruleList,
      fixes: { f: 'It was asked for.' },
      answers: { f: '' }
    };
    await act(async () => {
      button()?.click();
      await settle();
    });
    expect([button()?.disabled, words()]).toEqual([true, 'It was asked for.']);
    await show({ findings, fixes: { f: '' }, answers: { f: 'Applied: lr.' } });
    expect([button()?.disabled, words()]).toEqual([false, 'Applied: lr.']);
  });
});
