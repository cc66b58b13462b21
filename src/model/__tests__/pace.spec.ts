import { describe, expect, it, vi } from 'vitest';

import { DrawPace } from '../pace';

describe('DrawPace', () => {
  it('leaves the page half of its time', () => {
    const pace = new DrawPace();
    expect(pace.gap).toBe(0);
    pace.note({}, 40);
    pace.note({}, 60);
    expect(pace.gap).toBe(200);
  });

  it('follows what drawing costs now, and not what interrupts it', () => {
    const pace = new DrawPace();
    const picture = {};
    for (const ms of [40, 200, 900, 150, 120]) {
      pace.note(picture, ms);
    }
    expect(pace.gap).toBe(80);
    pace.note(picture, 10);
    expect(pace.gap).toBe(20);
    for (let i = 0; i < 5; i++) {
      pace.note(picture, 60);
    }
    expect(pace.gap).toBe(120);
  });

  it('never stops the pictures, and forgets the hidden ones', () => {
    const pace = new DrawPace();
    const picture = {};
    pace.note(picture, 60_000);
    expect(pace.gap).toBe(2000);
    pace.forget(picture);
    expect(pace.gap).toBe(0);
  });

  it('lets pictures ask one after the other', async () => {
    const pace = new DrawPace();
    const order: string[] = [];
    const answers: (() => void)[] = [];
    for (const name of ['a', 'b', 'c']) {
      pace.turn(() => {
        order.push(name);
        return new Promise(resolve => answers.push(resolve));
      });
    }
    expect(order).toEqual(['a']);
    answers[0]();
    await vi.waitFor(() => expect(order).toEqual(['a', 'b']));
  });

  it('does not let a slow picture hold up the others', async () => {
    vi.useFakeTimers();
    const pace = new DrawPace();
    const order: string[] = [];
    const ask = (name: string) => () => {
      order.push(name);
      return new Promise<void>(() => undefined);
    };
    pace.turn(ask('slow'));
    pace.turn(ask('next'));
    await vi.advanceTimersByTimeAsync(199);
    expect(order).toEqual(['slow']);
    await vi.advanceTimersByTimeAsync(1);
    expect(order).toEqual(['slow', 'next']);
    vi.useRealTimers();
  });

  it('gives the next one its turn after a failure', async () => {
    const pace = new DrawPace();
    const asked = vi.fn(() => Promise.resolve());
    pace.turn(() => Promise.reject(new Error('no server')));
    pace.turn(asked);
    await vi.waitFor(() => expect(asked).toHaveBeenCalledOnce());
  });
});
