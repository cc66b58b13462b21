/** What JupyterLab and React want to be there in the page of a test, before anything of theirs is imported. */

// Not by `vi.stubGlobal`: a test that takes its own stubs back would take these back, too.
Object.assign(globalThis, {
  DragEvent: MouseEvent,
  matchMedia: () => ({
    addListener: () => undefined,
    removeListener: () => undefined
  }),
  requestIdleCallback: (call: () => void) => call(),
  IS_REACT_ACT_ENVIRONMENT: true
});
