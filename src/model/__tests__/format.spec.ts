import { describe, expect, it } from 'vitest';

import {
  formatBytes,
  formatBytesOf,
  formatDuration,
  formatNumber,
  formatPercent,
  formatRate,
  formatStep
} from '../format';

describe('format', () => {
  it('shows numbers with three digits, and what is no number', () => {
    expect(
      [0, 0.0123456, 1234.5, 1.2e-7, 3e9, NaN, -Infinity].map(formatNumber)
    ).toEqual(['0', '0.0123', '1230', '1.20e-7', '3.00e9', 'NaN', '−∞']);
  });

  it('turns slow rates around', () => {
    expect([12.34, 1, 0.25, 0, null].map(formatRate)).toEqual([
      '12.3/s',
      '1/s',
      '4 s/step',
      '',
      ''
    ]);
  });

  it('shows sizes, durations and steps', () => {
    expect([0, 999, 1500, 2.5e9].map(formatBytes)).toEqual([
      '0 B',
      '999 B',
      '1.5 kB',
      '2.5 GB'
    ]);
    expect(formatBytesOf(8.24e9, 32e9)).toBe('8.24 / 32 GB');
    expect(formatBytesOf(5e8, 2e12)).toBe('5.00e-4 / 2 TB');
    expect([0, 0.254, 1].map(formatPercent)).toEqual(['0 %', '25 %', '100 %']);
    expect([0.05, 12, 3456, 200_000].map(formatDuration)).toEqual([
      '50 µs',
      '12 ms',
      '3.46 s',
      '3 min'
    ]);
    expect(formatStep(-1)).toBe('–');
  });
});
