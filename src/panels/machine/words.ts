/**
 * The meters in words.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IGpu, IHost } from '../../api/wire';
import { formatBytesOf, formatNumber, formatPercent } from '../../model/format';
import type { IMeter } from '../../model/machine';

/** What a GPU is called among `count` of them. */
export function gpuName(
  gpu: IGpu,
  count: number,
  trans: TranslationBundle
): string {
  return count > 1
    ? trans.__('GPU %1', gpu.device.replace(/^gpu/, ''))
    : trans.__('GPU');
}

/** What a meter is called; `device` is the name of its GPU. */
export function meterName(
  meter: IMeter,
  device: string,
  trans: TranslationBundle
): string {
  switch (meter.kind) {
    case 'cpu':
      return trans.__('CPU');
    case 'memory':
      return trans.__('Memory');
    case 'gpu':
      return device;
    case 'gpu-memory':
      return trans.__('%1 memory', device);
  }
}

/** The number of a meter with its unit; a dash when it gives no reading. */
export function meterValue(meter: IMeter): string {
  if (meter.bytes) {
    return formatBytesOf(...meter.bytes);
  }
  return meter.share === null ? '–' : formatPercent(meter.share);
}

/** The number, and what else is to be said. */
export function meterNote(
  meter: IMeter,
  host: IHost,
  trans: TranslationBundle
): string {
  const value = meterValue(meter);
  if (meter.share === null) {
    return trans.__('no reading');
  }
  switch (meter.kind) {
    case 'cpu':
      return host.cores === null
        ? value
        : trans._n(
            '%2 of %3 core',
            '%2 of %3 cores',
            host.cores,
            value,
            formatNumber(host.cores)
          );
    case 'memory':
      return host.swap === null
        ? value
        : trans.__('%1; swap %2', value, formatPercent(host.swap / 100));
    case 'gpu':
    case 'gpu-memory':
      return value;
  }
}
