/**
 * The commands of the extension. Every action of a panel is one of these.
 */

/**
 * Ids of the commands; all but the first few take `{ run }` and mean the current run without it. Those that can
 * be done with several runs at once take `{ runs }`, too.
 */
export namespace CommandIDs {
  /** Show the side bar. */
  export const showSidebar = 'tdbg:show-sidebar';
  /** Look at everything now. */
  export const refresh = 'tdbg:refresh';
  /** Open what the address of the page asks for. */
  export const followLink = 'tdbg:follow-link';
  /** Make a run the current one. */
  export const openRun = 'tdbg:open-run';
  /** Open the grid of pictures. */
  export const openDashboard = 'tdbg:open-dashboard';
  /** Open one view: `{ run, view, params }`. */
  export const openView = 'tdbg:open-view';
  /** Draw the run beside the current one: `{ run }`. */
  export const drawBeside = 'tdbg:draw-beside';
  /** Draw runs over each other: `{ runs }`. */
  export const compareRuns = 'tdbg:compare-runs';
  /** Show a tensor: `{ run, tensor, view, newPanel }`. */
  export const showTensor = 'tdbg:show-tensor';
  /** Open the list of rules. */
  export const openRules = 'tdbg:open-rules';
  /** Edit the name in place. */
  export const renameRun = 'tdbg:rename-run';
  /** Edit the tags. */
  export const editTags = 'tdbg:edit-tags';
  /** Edit the note. */
  export const editNote = 'tdbg:edit-note';
  /** Delete from the disk. */
  export const deleteRun = 'tdbg:delete-run';
  /** Ask the training process to stop. */
  export const stopRun = 'tdbg:stop-run';
  /** Ask the training process to profile its next steps: `{ run, steps }`. */
  export const profileRun = 'tdbg:profile-run';
  /** Write the report. */
  export const writeReport = 'tdbg:write-report';
  /** Open the report that was written in a tab. */
  export const openReport = 'tdbg:open-report';
  /** Save the report that was written where the browser runs. */
  export const saveReport = 'tdbg:save-report';
  /** The same, as a notebook. */
  export const saveReportNotebook = 'tdbg:save-report-notebook';
  /** Copy the path. */
  export const copyPath = 'tdbg:copy-path';
  /** Stay at the latest step. */
  export const follow = 'tdbg:follow';
  /** Play or pause. */
  export const play = 'tdbg:play';
  /** One saved step on. */
  export const stepForward = 'tdbg:step-forward';
  /** One saved step back. */
  export const stepBack = 'tdbg:step-back';
  /** Move the view to a tab of its own. */
  export const popOut = 'tdbg:pop-out-view';
  /** Show the numbers of the view in place of the picture, or the picture again. */
  export const toggleTable = 'tdbg:toggle-table';
  /** Save the picture. */
  export const savePicture = 'tdbg:save-picture';
}
