/**
 * Signals for React.
 */
import type { ISignal } from '@lumino/signaling';
import { useLayoutEffect, useReducer } from 'react';

/**
 * Render again whenever one of `signals` emits; they may change from one call to the next.
 *
 * #### Notes
 * It listens from the moment of the rendering on: an effect that ran later would miss what is
 * emitted in between, and show what is out of date until the next emission.
 */
export function useSignals(
  ...signals: ReadonlyArray<ISignal<unknown, unknown> | null | undefined>
): void {
  const [, render] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => {
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
