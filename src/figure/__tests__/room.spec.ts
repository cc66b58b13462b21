import { beforeEach, describe, expect, it } from 'vitest';

import type { IPlotElement } from '../plotly';
import { Room } from '../room';

/** A plot as Plotly leaves it: labels of the ticks of an axis, and the margins it arrived at. */
function drawn(...labels: string[]): IPlotElement {
  const plot = document.createElement('div') as unknown as IPlotElement;
  plot.innerHTML = labels
    .map(label => `<g class="ytick"><text>${label}</text></g>`)
    .join('');
  return Object.assign(plot, {
    _fullLayout: { _size: { l: 61.5, r: 12, t: 34, b: 48, w: 100, h: 100 } }
  });
}

const drawing = (title = 'Loss') => ({
  data: [{ type: 'scatter', name: 'loss', y: [1, 2] }],
  layout: {
    margin: { l: 44 },
    xaxis: { automargin: true },
    yaxis: { title: { text: title } }
  }
});

describe('Room', () => {
  let room: Room;

  beforeEach(() => {
    room = new Room();
    expect(room.fit(drawing()).layout).toEqual(drawing().layout);
    expect(room.check(drawn('0.1', '0.2'))).toBe(true);
  });

  it('keeps the margins that Plotly found, and measures nothing', () => {
    const { data, layout } = room.fit(drawing());
    expect(data).toEqual(drawing().data);
    expect(layout['margin']).toEqual({
      l: 61.5,
      r: 12,
      t: 34,
      b: 48,
      autoexpand: false
    });
    expect(layout['xaxis']).toEqual({ automargin: false });
    expect(layout['yaxis']).toEqual({
      title: { text: 'Loss' },
      automargin: false
    });
    expect(room.check(drawn('0.3', '1'))).toBe(true);
  });

  it('measures again when a label has become longer', () => {
    room.fit(drawing());
    expect(room.check(drawn('0.1', '0.25'))).toBe(false);
    expect(room.fit(drawing()).layout).toEqual(drawing().layout);
    expect(room.check(drawn('0.1', '0.25'))).toBe(true);
    expect(room.fit(drawing()).layout['margin']).toHaveProperty('autoexpand');
  });

  it('measures again when something else stands around the picture', () => {
    expect(room.fit(drawing('Value')).layout).toEqual(drawing('Value').layout);
  });

  it('does not take an earlier drawing for one that was measured', () => {
    room.fit(drawing());
    room.forget();
    expect(room.check(drawn('0.1'))).toBe(true);
    expect(room.fit(drawing()).layout).toEqual(drawing().layout);
  });

  it('goes on measuring where Plotly does not tell its margins', () => {
    const other = new Room();
    other.fit(drawing());
    other.check(document.createElement('div') as unknown as IPlotElement);
    expect(other.fit(drawing()).layout).toEqual(drawing().layout);
  });
});
