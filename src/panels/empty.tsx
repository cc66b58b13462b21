/**
 * What a panel shows while it has nothing else: what is missing, and what to do next.
 */
import * as React from 'react';

/** A title, a sentence, and code to copy. */
export function EmptyState(props: {
  readonly title: string;
  readonly code?: string;
  readonly children?: React.ReactNode;
}): JSX.Element {
  return (
    <div className="jp-TdbgEmpty" role="status">
      <div className="jp-TdbgEmpty-title">{props.title}</div>
      {props.children && (
        <div className="jp-TdbgEmpty-text">{props.children}</div>
      )}
      {props.code && <pre className="jp-TdbgEmpty-code">{props.code}</pre>}
    </div>
  );
}
