/**
 * Numbers, sizes and times as people read them. Units are not translated.
 */

const INTEGER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

/** `12,345`; an en dash for a step that is none. */
export function formatStep(step: number): string {
  return step < 0 ? '–' : INTEGER.format(step);
}

/** Three significant digits: `0.00123`, `1.2e-7`, `45.1`. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞';
  }
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    return value.toExponential(2).replace('e+', 'e');
  }
  return String(Number(value.toPrecision(3)));
}

/** Steps per second: `12.3/s`, or `4.1 s/step` for slow ones. */
export function formatRate(perSecond: number | null): string {
  if (perSecond === null || !(perSecond > 0)) {
    return '';
  }
  return perSecond >= 0.95
    ? `${formatNumber(perSecond)}/s`
    : `${formatNumber(1 / perSecond)} s/step`;
}

/** `1.2 MB`, decimal units. */
export function formatBytes(bytes: number): string {
  const [size, unit] = Private.byteUnit(bytes);
  return `${formatNumber(bytes / size)} ${unit}`;
}

/** `8.2 / 32 GB`: both in the unit of the second. */
export function formatBytesOf(used: number, total: number): string {
  const [size, unit] = Private.byteUnit(total);
  return `${formatNumber(used / size)} / ${formatNumber(total / size)} ${unit}`;
}

/** A duration given in ms: `350 ms`, `4.2 s`, `3 min`, `2 h`. */
export function formatDuration(ms: number): string {
  if (ms < 0.1) {
    return `${formatNumber(ms * 1000)} µs`;
  }
  if (ms < 1000) {
    return `${formatNumber(ms)} ms`;
  }
  const seconds = ms / 1000;
  if (seconds < 100) {
    return `${formatNumber(seconds)} s`;
  }
  return seconds < 6000
    ? `${Math.round(seconds / 60)} min`
    : `${formatNumber(seconds / 3600)} h`;
}

/** A share of 0 to 1 as a percentage. */
export function formatShare(share: number): string {
  return `${formatNumber(share * 100)} %`;
}

/** A share of 0 to 1 in whole percent, for values that change all the time. */
export function formatPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** Time of day of an epoch time in ms. */
export function formatTime(ms: number): string {
  return new Date(ms).toLocaleTimeString();
}

/** Date and time of an epoch time in ns. */
export function formatDate(ns: number): string {
  return new Date(ns / 1e6).toLocaleString(undefined, {
    dateStyle: 'medium',
    timeStyle: 'short'
  });
}

/** `16×3×3`; `scalar` shapes are empty. */
export function formatShape(shape: ReadonlyArray<number>): string {
  return shape.join('×');
}

namespace Private {
  /** Size and name of the unit in which `bytes` is less than a thousand. */
  export function byteUnit(bytes: number): readonly [number, string] {
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let size = 1;
    let unit = 0;
    while (bytes / size >= 999.5 && unit < units.length - 1) {
      size *= 1000;
      unit += 1;
    }
    return [size, units[unit]];
  }
}
