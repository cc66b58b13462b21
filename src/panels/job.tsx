/**
 * How far long work on the server is, and the way to give it up.
 */
import * as React from 'react';

/** What the line needs. */
export interface IJobLineProps {
  /** 0 to 1. */
  readonly progress: number;
  /** Of the bar. */
  readonly label: string;
  readonly message: string;
  /** Of the message; `status` has it read out. */
  readonly role?: 'status';
  readonly cancel: string;
  /** What is given up, where the word alone does not say so. */
  readonly cancelLabel?: string;
  readonly onCancel: () => void;
}

/** A bar, what is being done, and a button. */
export function JobLine(props: IJobLineProps): JSX.Element {
  return (
    <div className="jp-TdbgJob">
      <progress
        className="jp-TdbgJob-bar"
        max={1}
        value={props.progress}
        aria-label={props.label}
      />
      <span className="jp-TdbgJob-message" role={props.role}>
        {props.message}
      </span>
      <button
        className="jp-TdbgLink"
        aria-label={props.cancelLabel}
        onClick={props.onCancel}
      >
        {props.cancel}
      </button>
    </div>
  );
}
