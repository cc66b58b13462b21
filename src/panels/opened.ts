/**
 * What is folded open at the foot of a section that scrolls.
 */
import type { SyntheticEvent } from 'react';

/** Scroll until what was just folded open is seen: it may lie below the edge, as if nothing had happened. */
export function showOpened(event: SyntheticEvent<HTMLDetailsElement>): void {
  const details = event.currentTarget;
  if (details.open) {
    details.scrollIntoView({ block: 'nearest' });
  }
}
