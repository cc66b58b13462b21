/**
 * Signals for React.
 */
import type { ISignal } from '@lumino/signaling';
import { useEffect, useReducer } from 'react';

/** Render again whenever one of `signals` emits; they may change from one call to the next. */
export function useSignals(
  ...signals: ReadonlyArray<ISignal<unknown, unknown> | null | undefined>
): void {
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const slot = (): void => render();
    for (const signal of signals) {
      signal?.connect(slot);
    }
    return () => {
      for (const signal of signals) {
        signal?.disconnect(slot);
      }
    };
  }, signals);
}
