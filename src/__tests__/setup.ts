/** What JupyterLab and React want to be there in the page of a test, before anything of theirs is imported. */
import { vi } from 'vitest';

vi.stubGlobal('DragEvent', MouseEvent);
vi.stubGlobal('matchMedia', () => ({
  addListener: () => undefined,
  removeListener: () => undefined
}));
vi.stubGlobal('requestIdleCallback', (call: () => void) => call());
vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
