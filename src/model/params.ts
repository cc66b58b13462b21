/**
 * The parameters of a view: their defaults, and what a run can offer for them.
 */
import type {
  ITensorInfo,
  IViewInfo,
  IViewParam,
  ParamChoice,
  ViewParams
} from '../api/wire';

/** The parameter that the step cursor sets, if the view has one. */
export function stepParam(view: IViewInfo): IViewParam | undefined {
  return view.params.find(p => p.kind === 'step' && p.name === 'step');
}

/**
 * Whether the picture changes when the cursor moves. One with steps along its axis does not: there
 * the cursor is drawn over it.
 */
export function movesWithCursor(view: IViewInfo): boolean {
  return view.axis !== 'step' && stepParam(view) !== undefined;
}

/** The parameter that takes the range of time that all pictures of a run show, if the view has one. */
export function rangeParam(view: IViewInfo): IViewParam | undefined {
  return view.params.find(p => p.kind === 'seconds' && p.name === 'range');
}

/** The parameters that people set: all but the one the cursor sets. */
export function visibleParams(view: IViewInfo): ReadonlyArray<IViewParam> {
  const cursor = stepParam(view);
  return view.params.filter(param => param !== cursor);
}

/** The tensors that fit `param`. */
export function matchingTensors(
  param: IViewParam,
  tensors: ReadonlyArray<ITensorInfo>
): ReadonlyArray<ITensorInfo> {
  const kinds = param.tensor_kinds ?? [];
  return kinds.length === 0
    ? tensors
    : tensors.filter(tensor => kinds.includes(tensor.kind));
}

/** Whether `param` takes the tensor. */
export function accepts(param: IViewParam, tensor: ITensorInfo): boolean {
  return param.kind === 'tensor' && matchingTensors(param, [tensor]).length > 0;
}

/** Whether `param` takes one run besides the one that is shown, or several. */
export function takesRuns({ kind }: IViewParam): boolean {
  return kind === 'run' || kind === 'runs';
}

/** Name of the view's parameter that takes one tensor, if it has one. */
export function tensorParam(view: IViewInfo): IViewParam | undefined {
  return view.params.find(param => param.kind === 'tensor');
}

/**
 * The parameters to send: what was chosen, then the defaults that are known. What is left out, the
 * server chooses.
 *
 * @param points - sent as `n_out` or `points` to views that have such a parameter
 */
export function completeParams(
  view: IViewInfo,
  chosen: ViewParams,
  points: number | null = null
): ViewParams {
  const params: { [name: string]: ViewParams[string] } = {};
  for (const param of view.params) {
    const value = chosen[param.name];
    if (value !== undefined && value !== null) {
      params[param.name] = value;
    } else if (
      points !== null &&
      (param.name === 'n_out' || param.name === 'points')
    ) {
      params[param.name] = clamp(points, param);
    } else if (param.default !== null && param.default !== undefined) {
      params[param.name] = param.default;
    }
  }
  return params;
}

/** `value` within the limits of `param`. */
export function clamp(value: number, param: IViewParam): number {
  return Math.min(
    Math.max(value, param.minimum ?? -Infinity),
    param.maximum ?? Infinity
  );
}

/** Value and text of each choice of `param`. */
export function choicesOf(
  param: IViewParam
): ReadonlyArray<readonly [ParamChoice, string]> {
  return param.choices.map((choice, i) => [
    choice,
    param.choice_labels?.[i] || humanize(String(choice))
  ]);
}

/** `signed_log` as `Signed log`. */
export function humanize(name: string): string {
  const text = name.replace(/_/g, ' ').trim();
  return text.charAt(0).toUpperCase() + text.slice(1);
}
