import { describe, expect, it } from 'vitest';

import { finding } from '../../api/__tests__/fake';
import type { IFinding, IRuleState, IRules } from '../../api/wire';
import {
  byWeight,
  causeOf,
  consequences,
  fixWords,
  ruleRows,
  spans
} from '../rules';

function state(rule: string, over: Partial<IRuleState> = {}): IRuleState {
  return {
    rule,
    status: 'no_issue',
    reason: '',
    step_checked: 99,
    findings: 0,
    cost_ms: 1,
    parameters: {},
    ...over
  };
}

function rules(
  states: ReadonlyArray<IRuleState>,
  findings: ReadonlyArray<IFinding>,
  muted: ReadonlyArray<string> = []
): IRules {
  return { states, findings, muted, fixes: {}, answers: {} };
}

describe('ruleRows', () => {
  it('puts the worst first, then broken rules, then the calm, then those without a say', () => {
    const rows = ruleRows(
      rules(
        [
          state('pictures', { status: 'not_applicable' }),
          state('calm'),
          state('broken', { status: 'error' }),
          state('warns'),
          state('cries')
        ],
        [
          finding({ id: '1', rule: 'warns', severity: 'warning' }),
          finding({ id: '2', rule: 'cries', severity: 'critical' })
        ]
      )
    );
    expect(rows.map(row => row.rule)).toEqual([
      'cries',
      'warns',
      'broken',
      'calm',
      'pictures'
    ]);
    expect(rows[0].severity).toBe('critical');
  });

  it('puts what follows below its cause, over any number of links', () => {
    const rows = ruleRows(
      rules(
        [state('nan'), state('late'), state('lr'), state('loss')],
        [
          finding({ id: 'n', rule: 'nan', severity: 'critical', cause: 'l' }),
          finding({ id: 'l', rule: 'lr', severity: 'warning' }),
          finding({ id: 's', rule: 'loss', severity: 'warning', cause: 'n' })
        ]
      )
    );
    expect(rows.map(row => [row.rule, row.follows])).toEqual([
      ['lr', ''],
      ['nan', 'lr'],
      ['loss', 'nan'],
      ['late', '']
    ]);
  });

  it('loses nobody in a circle of causes', () => {
    const rows = ruleRows(
      rules(
        [],
        [
          finding({ id: 'a', rule: 'one', cause: 'b' }),
          finding({ id: 'b', rule: 'two', cause: 'a' })
        ]
      )
    );
    expect(rows.map(row => row.rule).sort()).toEqual(['one', 'two']);
  });

  it('does not call a rule a consequence that has a finding of its own', () => {
    const rows = ruleRows(
      rules(
        [],
        [
          finding({ id: 'a', rule: 'one' }),
          finding({ id: 'b', rule: 'two', cause: 'a' }),
          finding({ id: 'c', rule: 'two' })
        ]
      )
    );
    expect(rows.every(row => row.follows === '')).toBe(true);
  });

  it('knows rules of which only findings are left, and the muted, which come later', () => {
    const rows = ruleRows(
      rules(
        [],
        [
          finding({ id: '1', rule: 'loud', severity: 'critical' }),
          finding({ id: '2', rule: 'mild', severity: 'notice', step_first: 3 })
        ],
        ['loud']
      )
    );
    expect(rows.map(row => [row.rule, row.muted])).toEqual([
      ['mild', false],
      ['loud', true]
    ]);
    expect(rows[0].first).toBe(3);
    expect(rows[0].state).toBeNull();
  });
});

describe('findings', () => {
  const root = finding({ id: 'r', severity: 'critical' });
  const leaf = finding({ id: 'x', severity: 'notice', cause: 'r' });

  it('know cause and consequences', () => {
    expect(consequences(root, [root, leaf])).toEqual([leaf]);
    expect(causeOf(leaf, [root, leaf])).toBe(root);
    expect(causeOf(root, [root, leaf])).toBeUndefined();
    expect(consequences(finding({ id: '' }), [root])).toEqual([]);
  });

  it('are ordered by weight, and drawn the other way round', () => {
    expect(byWeight([leaf, root])).toEqual([root, leaf]);
    expect(spans([root, leaf]).map(span => span.severity)).toEqual([
      'notice',
      'critical'
    ]);
  });
});

describe('fixWords', () => {
  it('tells what changes', () => {
    expect(fixWords({ setting: 'learning_rate', factor: 0.1 })).toBe(
      'Learning rate × 0.1'
    );
    expect(fixWords({ setting: 'clip_norm', value: 1 })).toBe('Clip norm = 1');
    expect(fixWords({ setting: 'clip', value: 1, group: 0 })).toBe(
      'Clip = 1, Group = 0'
    );
  });
});
