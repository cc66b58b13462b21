import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, it, vi } from 'vitest';

import { param } from '../../api/__tests__/fake';
import { Popover } from '../popover';
import { ParamControl } from '../view/param';

it('keeps what was typed into a field when it is closed by a press elsewhere', () => {
  const onChange = vi.fn();
  const host = document.body.appendChild(document.createElement('div'));
  const root = createRoot(host);
  act(() =>
    root.render(
      <Popover
        button="Options"
        buttonClass=""
        label="Options"
        popup="dialog"
        render={() => (
          <ParamControl
            param={param({ name: 'slices', label: 'Slices', kind: 'int' })}
            value={8}
            tensors={[]}
            runs={[]}
            trans={nullTranslator.load('tdbg_lab')}
            onChange={onChange}
          />
        )}
      />
    )
  );
  act(() => host.querySelector('button')?.click());
  const field = document.querySelector<HTMLInputElement>('input')!;
  expect(document.activeElement).toBe(field);
  act(() => {
    const { set } = Object.getOwnPropertyDescriptor(
      HTMLInputElement.prototype,
      'value'
    )!;
    set?.call(field, '12');
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  act(() => {
    host.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  });
  expect(document.querySelector('input')).toBeNull();
  expect(onChange).toHaveBeenCalledWith(12);
  act(() => root.unmount());
  host.remove();
});
