import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { StepCursor } from '../cursor';

describe('StepCursor', () => {
  let cursor: StepCursor;
  let emitted: number;
  beforeEach(() => {
    vi.useFakeTimers();
    cursor = new StepCursor({ playMs: 400, frameMs: 100 });
    cursor.setSteps([0, 10, 20, 30, 40]);
    emitted = 0;
    cursor.changed.connect(() => (emitted += 1));
  });
  afterEach(() => {
    cursor.dispose();
    vi.useRealTimers();
  });

  it('follows at first: shows the last step and asks for the latest', () => {
    expect(cursor.step).toBe(40);
    expect(cursor.requested).toBeNull();
    cursor.extend(50);
    expect(cursor.step).toBe(50);
  });

  it('has no step while the run has none', () => {
    expect(new StepCursor().step).toBe(-1);
  });

  describe('#set()', () => {
    it('snaps to the nearest step with data and stops following', () => {
      cursor.set(14);
      expect([cursor.step, cursor.requested]).toEqual([10, 10]);
      cursor.set(16);
      expect(cursor.step).toBe(20);
      cursor.set(-5);
      expect(cursor.step).toBe(0);
      cursor.set(1e9);
      expect(cursor.step).toBe(40);
      expect(cursor.following).toBe(false);
    });

    it('stays when the run grows, and says nothing when nothing changed', () => {
      cursor.set(10);
      expect(emitted).toBe(1);
      cursor.set(11);
      expect(emitted).toBe(1);
      cursor.extend(50);
      expect(cursor.step).toBe(10);
    });
  });

  describe('#cut()', () => {
    it('takes away the steps beyond the one where the run goes on', () => {
      cursor.cut(25);
      expect(cursor.steps).toEqual([0, 10, 20, 25]);
      expect(cursor.step).toBe(25);
    });

    it('moves a cursor that stands on one of them, and no other', () => {
      cursor.set(30);
      cursor.cut(25);
      expect(cursor.step).toBe(25);
      cursor.set(10);
      cursor.cut(20);
      expect(cursor.step).toBe(10);
    });

    it('does nothing where the run is there or beyond, or has no step', () => {
      cursor.cut(40);
      cursor.cut(50);
      cursor.cut(-1);
      expect([cursor.last, emitted]).toEqual([40, 0]);
    });
  });

  describe('#move()', () => {
    it('goes by saved steps and stops at the ends', () => {
      cursor.move(-1);
      expect(cursor.step).toBe(30);
      cursor.move(-10);
      expect(cursor.step).toBe(0);
      cursor.move(2);
      expect(cursor.step).toBe(20);
    });
  });

  describe('#follow()', () => {
    it('returns to the latest step', () => {
      cursor.set(10);
      cursor.follow();
      expect(cursor.requested).toBeNull();
      expect(cursor.step).toBe(40);
    });
  });

  describe('#play()', () => {
    it('starts over at the end, visits later and later steps, and ends', () => {
      cursor.play();
      expect(cursor.step).toBe(0);
      const seen: number[] = [];
      for (let i = 0; i < 10; i++) {
        vi.advanceTimersByTime(100);
        seen.push(cursor.step);
      }
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
      expect(seen[9]).toBe(40);
      expect(cursor.playing).toBe(false);
    });

    it('is ended by setting a step', () => {
      cursor.play();
      cursor.set(20);
      vi.advanceTimersByTime(1000);
      expect(cursor.step).toBe(20);
    });
  });

  describe('#setSteps()', () => {
    it('holds the cursor where it stands when the list is thinned out', () => {
      cursor.set(30);
      cursor.setSteps([0, 28, 60]);
      expect(cursor.step).toBe(30);
      cursor.move(1);
      expect(cursor.step).toBe(60);
    });

    it('moves the cursor onto the data when there is none around it', () => {
      cursor.set(30);
      cursor.setSteps([0, 10, 20]);
      expect(cursor.step).toBe(20);
    });

    it('lets a cursor that nobody has set follow', () => {
      cursor.setSteps([0, 10, 60]);
      expect(cursor.following).toBe(true);
      expect(cursor.step).toBe(60);
    });
  });

  it('emits a range only when it changed', () => {
    let ranges = 0;
    cursor.rangeChanged.connect(() => (ranges += 1));
    cursor.range = [0, 10];
    cursor.range = [0, 10];
    cursor.range = null;
    expect(ranges).toBe(2);
  });
});
