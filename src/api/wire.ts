/**
 * What travels between the server and the browser: the shapes only.
 *
 * Times are `_ns` since the Unix epoch, UTC. Steps are non-negative integers, -1 when there is
 * none. Numbers that JSON cannot hold arrive as `null` or as "NaN", "Infinity", "-Infinity".
 */
import type { JSONObject } from '@lumino/coreutils';

/** Where a run stands. */
export type RunStatus =
  'running' | 'finished' | 'stopped' | 'failed' | 'crashed';

/** How bad a finding is. */
export type Severity = 'notice' | 'warning' | 'critical';

/** Where a rule stands on a run. */
export type RuleStatus =
  | 'in_progress'
  | 'no_issue'
  | 'issue_found'
  | 'error'
  | 'stopped'
  | 'not_applicable';

/** A number as JSON may have to spell it. */
export type WireNumber = number | string | null;

/** What the server is and can do. */
export interface IServerStatus {
  readonly version: string;
  /** Names of the configured run roots. */
  readonly roots: ReadonlyArray<string>;
  readonly gpu: boolean;
}

/** Number of findings by severity. */
export interface IFindingCounts {
  readonly notice: number;
  readonly warning: number;
  readonly critical: number;
}

/** The runs under the roots. */
export interface IRunList {
  readonly runs: ReadonlyArray<IRunSummary>;
  /** Whether there are more runs or folders than are looked at. */
  readonly truncated: boolean;
  /** Names of run roots that cannot be read: not there yet, or not mounted at the moment. */
  readonly unread: ReadonlyArray<string>;
}

/** One line of the list of runs. */
export interface IRunSummary {
  readonly id: string;
  readonly name: string;
  /** Name of the run root. */
  readonly root?: string;
  /** Relative to the run root. */
  readonly path: string;
  readonly status: RunStatus;
  readonly created_ns: number;
  readonly ended_ns: number | null;
  readonly last_step: number;
  readonly last_write_ns: number | null;
  readonly steps_per_second: number | null;
  readonly tags: ReadonlyArray<string>;
  readonly notes: string;
  readonly framework: string;
  /** At most 64 points `[step, value]`. */
  readonly loss: ReadonlyArray<readonly [number, WireNumber]> | null;
  readonly findings: IFindingCounts;
  /** Whether the server holds it open. */
  readonly open: boolean;
}

/** What tdbg-lab itself costs a run. */
export interface IRunCost {
  /** Time in capture per saved step, ms. */
  readonly capture_ms: number | null;
  /** Time of a step, ms. */
  readonly step_ms: number | null;
  /** Share of the training time, 0 to 1. */
  readonly share: number | null;
  readonly bytes_written: number | null;
  /** Distance of saved steps, where it was chosen as training went on. */
  readonly save_every: number | null;
}

/** Everything about one run but its data. */
export interface IRunDetail extends IRunSummary {
  /** Grows with each change of the data. */
  readonly version: number;
  readonly ranks: ReadonlyArray<number>;
  readonly modes: ReadonlyArray<string>;
  readonly first_step: number;
  readonly hyperparameters: JSONObject;
  readonly git: JSONObject | null;
  readonly host: string;
  readonly cost: IRunCost | null;
  /** Why it failed. */
  readonly error: string | null;
}

/** What of a run may be edited. */
export interface IRunEdit {
  readonly name?: string;
  readonly tags?: ReadonlyArray<string>;
  readonly notes?: string;
  /** Names of all rules that are mute. */
  readonly muted?: ReadonlyArray<string>;
}

/** A named series of statistics. */
export interface ITensorInfo {
  readonly name: string;
  readonly kind: string;
  /** Dotted path, empty when it belongs to no module. */
  readonly module: string;
  readonly dtype: string;
  readonly shape: ReadonlyArray<number>;
  readonly collections: ReadonlyArray<string>;
  readonly findings: number;
  /** Of the worst finding on it. */
  readonly severity: Severity | null;
}

/** Answer to "which tensors". */
export interface ITensorList {
  readonly tensors: ReadonlyArray<ITensorInfo>;
  readonly steps: {
    readonly first: number;
    readonly last: number;
    readonly count: number;
  };
}

/** What kind of control a parameter of a view needs. */
export type ParamKind =
  | 'tensor'
  | 'tensors'
  | 'regex'
  | 'choice'
  | 'int'
  | 'bool'
  | 'step'
  | 'steps'
  | 'range'
  | 'seconds'
  | 'run'
  | 'runs'
  | 'float'
  | 'text';

/** Value of a parameter. */
export type ParamValue =
  | string
  | number
  | boolean
  | null
  | ReadonlyArray<string>
  | ReadonlyArray<number | null>;

/** A choice. */
export type ParamChoice = string | number;

/** One parameter of a view. */
export interface IViewParam {
  readonly name: string;
  readonly label: string;
  readonly kind: ParamKind;
  readonly default: ParamValue;
  readonly choices: ReadonlyArray<ParamChoice>;
  /** Texts parallel to `choices`; may be empty. */
  readonly choice_labels?: ReadonlyArray<string>;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** Kinds of tensors it accepts; all when empty. */
  readonly tensor_kinds: ReadonlyArray<string>;
  readonly help: string;
}

/** A picture the server can draw. */
export interface IViewInfo {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly axis: 'step' | 'time' | null;
  readonly heavy: boolean;
  readonly params: ReadonlyArray<IViewParam>;
}

/** Parameters of a view by name. */
export type ViewParams = { readonly [name: string]: ParamValue };

/** A Plotly figure as JSON; only its outline is known here. */
export interface IFigureJson {
  readonly data: ReadonlyArray<JSONObject>;
  readonly layout: JSONObject;
  readonly frames?: ReadonlyArray<JSONObject>;
}

/** Where a job of the server stands. */
export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

/** A job still running on the server. */
export interface IPendingJob {
  readonly job: string;
  /** 0 to 1. */
  readonly progress: number;
  readonly message: string;
}

/** Answer to "draw this". */
export interface IFigureAnswer {
  readonly figure: IFigureJson;
  readonly version: number;
  readonly pending: IPendingJob | null;
  /** Time the server took, ms. */
  readonly ms: number;
}

/** A view and the parameters to open it with. */
export interface IViewRef {
  readonly name: string;
  readonly params: ViewParams;
}

/** What a rule saw. */
export interface IFinding {
  readonly id: string;
  readonly rule: string;
  readonly severity: Severity;
  readonly step_first: number;
  /** Inclusive. */
  readonly step_last: number;
  readonly message: string;
  readonly tensor: string;
  readonly module: string;
  readonly evidence: { readonly [name: string]: WireNumber };
  readonly advice: ReadonlyArray<string>;
  readonly view: IViewRef | null;
  readonly rank: number | null;
  readonly time_ns: number;
  /** Id of the finding it follows from; empty for a root cause. */
  readonly cause: string;
  /** What can be applied to put it right. */
  readonly fix: IFix | null;
}

/** A change of the training, by the names of its parts. */
export interface IFix {
  readonly [part: string]: WireNumber | boolean;
}

/** Where one rule stands. */
export interface IRuleState {
  readonly rule: string;
  readonly status: RuleStatus;
  readonly reason: string;
  readonly step_checked: number;
  readonly findings: number;
  /** Time spent checking so far, ms. */
  readonly cost_ms: number;
  readonly parameters: JSONObject;
}

/** Answer to "what did the rules see". */
export interface IRules {
  readonly states: ReadonlyArray<IRuleState>;
  readonly findings: ReadonlyArray<IFinding>;
  /** Names of the rules of which nobody is told. */
  readonly muted: ReadonlyArray<string>;
  /** Of each finding with a fix: why it cannot be applied now, empty when it can. By id. */
  readonly fixes: { readonly [finding: string]: string };
  /** Of each finding whose fix was asked for: what became of it, empty until the training answers. By id. */
  readonly answers: { readonly [finding: string]: string };
}

/** A threshold of a rule. */
export interface IThreshold {
  readonly name: string;
  /** As in the source: `float`, `int | None`. */
  readonly type: string;
  readonly default: WireNumber | boolean;
  readonly help: string;
}

/** A rule the server knows. */
export interface IRuleInfo {
  readonly name: string;
  readonly title: string;
  readonly group: string;
  /** What it sees. */
  readonly explanation: string;
  readonly thresholds: ReadonlyArray<IThreshold>;
}

/** Thresholds by name; texts are read by the server as what the threshold is. */
export interface IThresholds {
  readonly [name: string]: WireNumber | boolean;
}

/** What became of a request to profile. */
export interface IProfileRequest {
  readonly id: string;
  /** `requested`: none of its steps has begun; `saving`: recorded, its views are not ready yet. */
  readonly state: 'requested' | 'recording' | 'saving' | 'ready' | 'refused';
  /** What the training process said; empty before. */
  readonly answer: string;
}

/** Profiles of a run, as far as the panel needs to know. */
export interface IProfiling {
  /** The last ones, oldest first. */
  readonly requests: ReadonlyArray<IProfileRequest>;
}

/** Where work that was asked for stands. */
export interface IAsked<R> extends IPendingJob {
  readonly state: JobState;
  /** Null before it is done. */
  readonly result: R | null;
}

/** Where a check of a run with other thresholds stands. */
export type IRecheck = IAsked<IRecheckResult>;

/** Where a report on a run stands. */
export type IReport = IAsked<IReportResult>;

/** The page that was written. */
export interface IReportResult {
  /** Name of the file. */
  readonly file: string;
  /** Its size. */
  readonly bytes: number;
}

/** What such a check found. */
export interface IRecheckResult {
  readonly state: IRuleState;
  /** The first ones. */
  readonly findings: ReadonlyArray<IFinding>;
  /** Number of all. */
  readonly found: number;
}

/** A GPU of the server's machine; null is what it does not tell. */
export interface IGpu {
  /** `gpu0`, `gpu1`, ... */
  readonly device: string;
  readonly name: string;
  /** Of the time some kernel ran. */
  readonly percent: number | null;
  /** Bytes, by all processes. */
  readonly memory_used: number | null;
  readonly memory_total: number | null;
  readonly temperature_c: number | null;
  readonly power_w: number | null;
  /** False while its driver hangs. */
  readonly answers: boolean;
}

/** How busy the server's machine is; null is what it does not tell. */
export interface IHost {
  readonly time_ns: number;
  /** Percent of `cores`. */
  readonly cpu: number | null;
  /** Number of cores, or the container's share of them. */
  readonly cores: number | null;
  /** Bytes; of the container where it has a limit. */
  readonly memory_used: number | null;
  readonly memory_total: number | null;
  /** Percent; null without swap space. */
  readonly swap: number | null;
  /** Bytes per second, as the next three. */
  readonly disk_read: number | null;
  readonly disk_write: number | null;
  readonly net_recv: number | null;
  readonly net_sent: number | null;
  readonly gpus: ReadonlyArray<IGpu>;
  /** Why some or all GPUs cannot be read; empty when all can. */
  readonly gpu_problem: string;
}

/** What the server says over the socket. */
export type StreamMessage =
  | {
      readonly type: 'run';
      readonly summary: IRunSummary;
      readonly version: number;
      readonly last_step: number;
    }
  | { readonly type: 'runs' }
  | { readonly type: 'removed'; readonly id: string }
  | {
      readonly type: 'job';
      readonly job: string;
      readonly progress: number;
      readonly message: string;
      readonly state: JobState;
    }
  | {
      readonly type: 'finding';
      readonly run: string;
      readonly finding: IFinding;
    }
  | (IHost & { readonly type: 'host' })
  | { readonly type: 'pong' };

/** What the browser says over the socket. */
export type ClientMessage =
  | { readonly type: 'watch'; readonly runs: ReadonlyArray<string> }
  | { readonly type: 'host'; readonly on: boolean }
  | { readonly type: 'ping' };

/** The number `value` stands for; NaN when it is none. */
export function toNumber(value: WireNumber | undefined): number {
  return typeof value === 'number'
    ? value
    : typeof value === 'string'
      ? Number(value)
      : NaN;
}

/** Whether `data` is a message of the stream. */
export function isStreamMessage(data: unknown): data is StreamMessage {
  return (
    typeof data === 'object' &&
    data !== null &&
    typeof (data as { type?: unknown }).type === 'string'
  );
}
