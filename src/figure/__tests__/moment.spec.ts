import { describe, expect, it } from 'vitest';

import { clickedMoment } from '../moment';

const clicked = (over: object = {}) => ({
  points: [
    {
      customdata: 50,
      pointIndex: 1,
      data: {
        meta: {
          moments: [
            [0, 1],
            [4, 7]
          ]
        }
      },
      ...over
    }
  ]
});

describe('clickedMoment', () => {
  it('gives the step and the part of the time of the point', () => {
    expect(clickedMoment(clicked())).toEqual({ step: 50, range: [4, 7] });
  });

  it('gives nothing for a point that stands for none', () => {
    expect(clickedMoment({})).toBeNull();
    expect(clickedMoment({ points: [] })).toBeNull();
    expect(clickedMoment(clicked({ data: {} }))).toBeNull();
    expect(clickedMoment(clicked({ pointIndex: 2 }))).toBeNull();
    expect(clickedMoment(clicked({ customdata: 'x' }))).toBeNull();
  });
});
