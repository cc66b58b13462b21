import { describe, expect, it } from 'vitest';

import { DrawPace } from '../pace';

describe('DrawPace', () => {
  it('leaves the page half of its time', () => {
    const pace = new DrawPace();
    expect(pace.gap).toBe(0);
    pace.note({}, 40);
    pace.note({}, 60);
    expect(pace.gap).toBe(200);
  });

  it('follows what drawing costs now, smoothly', () => {
    const pace = new DrawPace();
    const picture = {};
    pace.note(picture, 100);
    pace.note(picture, 0);
    expect(pace.gap).toBeCloseTo(140);
    for (let i = 0; i < 30; i++) {
      pace.note(picture, 10);
    }
    expect(pace.gap).toBeCloseTo(20, 0);
  });

  it('never stops the pictures, and forgets the hidden ones', () => {
    const pace = new DrawPace();
    const picture = {};
    pace.note(picture, 60_000);
    expect(pace.gap).toBe(2000);
    pace.forget(picture);
    expect(pace.gap).toBe(0);
  });
});
