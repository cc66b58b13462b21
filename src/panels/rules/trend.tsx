/**
 * When a rule found something, as a small strip of steps.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IFinding } from '../../api/wire';
import { formatStep } from '../../model/format';
import type { ISpan } from '../../model/rules';
import { spans } from '../../model/rules';

const [WIDTH, HEIGHT] = [84, 14];

/** Height of a mark by severity, px: told apart without colours too. */
const HEIGHTS = { notice: 5, warning: 9, critical: 14 };

/** Left edge and width of a stretch of steps, px; never too narrow to be seen. */
export function stretch(
  span: Pick<ISpan, 'first' | 'last'>,
  lastStep: number,
  width = WIDTH
): readonly [number, number] {
  const scale = width / (Math.max(lastStep, 0) + 1);
  const wide = Math.max((span.last - span.first + 1) * scale, 2);
  const left = Math.min(Math.max(span.first * scale, 0), width - 2);
  return [left, Math.min(wide, width - left)];
}

/** The strip: grey as far as the rule has looked, findings on top. */
export function Trend(props: {
  readonly findings: ReadonlyArray<IFinding>;
  readonly checked: number;
  readonly lastStep: number;
  readonly trans: TranslationBundle;
}): JSX.Element {
  const { findings, checked, trans } = props;
  const all = spans(findings);
  const lastStep = Math.max(
    props.lastStep,
    checked,
    ...all.map(span => span.last)
  );
  const [, done] = stretch({ first: 0, last: checked }, lastStep);
  const words = findings
    .slice(0, 5)
    .map(({ step_first, step_last }) =>
      step_first === step_last
        ? formatStep(step_first)
        : trans.__('%1 to %2', formatStep(step_first), formatStep(step_last))
    );
  const none =
    checked >= 0
      ? trans.__('No findings up to step %1', formatStep(checked))
      : trans.__('No step checked');
  const label =
    findings.length > 0
      ? trans.__('Findings at steps %1', words.join(', '))
      : none;
  return (
    <svg
      className="jp-TdbgTrend"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      {checked >= 0 && <rect y={HEIGHT - 2} width={done} height={2} />}
      {all.map((span, i) => {
        const [x, width] = stretch(span, lastStep);
        const height = HEIGHTS[span.severity];
        return (
          <rect
            key={i}
            className={`jp-mod-${span.severity}`}
            x={x}
            y={HEIGHT - height}
            width={width}
            height={height}
          />
        );
      })}
    </svg>
  );
}
