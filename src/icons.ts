/**
 * The icons of the extension.
 */
import { LabIcon } from '@jupyterlab/ui-components';

import crashedSvg from '../style/icons/crashed.svg';
import criticalSvg from '../style/icons/critical.svg';
import dashboardSvg from '../style/icons/dashboard.svg';
import failedSvg from '../style/icons/failed.svg';
import finishedSvg from '../style/icons/finished.svg';
import followSvg from '../style/icons/follow.svg';
import liveSvg from '../style/icons/live.svg';
import logoSvg from '../style/icons/logo.svg';
import noticeSvg from '../style/icons/notice.svg';
import optionsSvg from '../style/icons/options.svg';
import pauseSvg from '../style/icons/pause.svg';
import playSvg from '../style/icons/play.svg';
import popoutSvg from '../style/icons/popout.svg';
import rulesSvg from '../style/icons/rules.svg';
import stoppedSvg from '../style/icons/stopped.svg';
import tableSvg from '../style/icons/table.svg';
import warningSvg from '../style/icons/warning.svg';

/** Three histograms, one after the other. */
export const logoIcon = new LabIcon({ name: 'tdbg-lab:logo', svgstr: logoSvg });

/** All pictures of a run. */
export const dashboardIcon = new LabIcon({
  name: 'tdbg-lab:dashboard',
  svgstr: dashboardSvg
});

/** Stay at the latest step. */
export const followIcon = new LabIcon({
  name: 'tdbg-lab:follow',
  svgstr: followSvg
});

/** More parameters. */
export const optionsIcon = new LabIcon({
  name: 'tdbg-lab:options',
  svgstr: optionsSvg
});

/** Stand still. */
export const pauseIcon = new LabIcon({
  name: 'tdbg-lab:pause',
  svgstr: pauseSvg
});

/** Move through the steps. */
export const playIcon = new LabIcon({ name: 'tdbg-lab:play', svgstr: playSvg });

/** Open in a tab of its own. */
export const popoutIcon = new LabIcon({
  name: 'tdbg-lab:popout',
  svgstr: popoutSvg
});

/** What the rules saw. */
export const rulesIcon = new LabIcon({
  name: 'tdbg-lab:rules',
  svgstr: rulesSvg
});

/** The numbers of a picture. */
export const tableIcon = new LabIcon({
  name: 'tdbg-lab:table',
  svgstr: tableSvg
});

/** One per state of a run. */
export const runStatusIcons = {
  running: new LabIcon({ name: 'tdbg-lab:live', svgstr: liveSvg }),
  finished: new LabIcon({ name: 'tdbg-lab:finished', svgstr: finishedSvg }),
  stopped: new LabIcon({ name: 'tdbg-lab:stopped', svgstr: stoppedSvg }),
  failed: new LabIcon({ name: 'tdbg-lab:failed', svgstr: failedSvg }),
  crashed: new LabIcon({ name: 'tdbg-lab:crashed', svgstr: crashedSvg })
} as const;

/** One per severity of a finding. */
export const severityIcons = {
  notice: new LabIcon({ name: 'tdbg-lab:notice', svgstr: noticeSvg }),
  warning: new LabIcon({ name: 'tdbg-lab:warning', svgstr: warningSvg }),
  critical: new LabIcon({ name: 'tdbg-lab:critical', svgstr: criticalSvg })
} as const;
