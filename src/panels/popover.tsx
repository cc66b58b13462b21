/**
 * A small panel that opens below a button and closes on Escape or a press elsewhere.
 */
import * as React from 'react';
import { createPortal } from 'react-dom';

/** Properties of the popover. */
export interface IPopoverProps {
  /** Content of the button. */
  readonly button: React.ReactNode;
  readonly buttonClass: string;
  readonly label: string;
  /** What the button tells when the mouse rests on it. */
  readonly title?: string;
  /** Which edge of the button the panel keeps to. */
  readonly align?: 'start' | 'end';
  readonly className?: string;
  readonly popup: 'dialog' | 'listbox';
  /** Content of the panel, made when it is opened. */
  readonly render: (close: () => void) => React.ReactNode;
}

/** Button and panel; the focus moves into the panel and back. */
export function Popover(props: IPopoverProps): JSX.Element {
  const button = React.useRef<HTMLButtonElement>(null);
  const panel = React.useRef<HTMLDivElement>(null);
  const [place, setPlace] = React.useState<React.CSSProperties | null>(null);

  const close = React.useCallback(() => {
    setPlace(null);
    button.current?.focus();
  }, []);

  React.useEffect(() => {
    if (!place) {
      return;
    }
    const onPress = (event: Event): void => {
      const target = event.target as Node;
      if (
        !panel.current?.contains(target) &&
        !button.current?.contains(target)
      ) {
        leave();
      }
    };
    // A field that is taken away with the focus in it would not keep what was typed.
    const leave = (): void => {
      const { activeElement } = document;
      if (panel.current?.contains(activeElement)) {
        (activeElement as HTMLElement).blur();
      }
      setPlace(null);
    };
    document.addEventListener('pointerdown', onPress, true);
    window.addEventListener('resize', leave);
    const first = panel.current?.querySelector<HTMLElement>(
      'input, select, [tabindex="0"], button'
    );
    first?.focus();
    return () => {
      document.removeEventListener('pointerdown', onPress, true);
      window.removeEventListener('resize', leave);
    };
  }, [place]);

  const open = (): void => {
    const box = button.current?.getBoundingClientRect();
    if (!box) {
      return;
    }
    const below = window.innerHeight - box.bottom - 8;
    const above = box.top - 8;
    const down = below > 240 || below > above;
    setPlace({
      ...(down
        ? { top: box.bottom + 2, maxHeight: below }
        : { bottom: window.innerHeight - box.top + 2, maxHeight: above }),
      ...(props.align === 'end'
        ? { right: Math.max(4, window.innerWidth - box.right) }
        : { left: Math.max(4, Math.min(box.left, window.innerWidth - 330)) })
    });
  };

  return (
    <>
      <button
        ref={button}
        className={props.buttonClass}
        aria-haspopup={props.popup}
        aria-expanded={place !== null}
        aria-label={props.label}
        title={props.title ?? props.label}
        onClick={() => (place ? close() : open())}
      >
        {props.button}
      </button>
      {place &&
        createPortal(
          <div
            ref={panel}
            className={`jp-TdbgPopover ${props.className ?? ''}`}
            role={props.popup === 'dialog' ? 'dialog' : undefined}
            aria-label={props.label}
            style={place}
            onKeyDown={event => {
              event.stopPropagation();
              if (event.key === 'Escape') {
                close();
              }
            }}
          >
            {props.render(close)}
          </div>,
          // Within the panel that it was opened from, so that a press here is none elsewhere.
          button.current?.closest('.jp-TdbgPopover') ?? document.body
        )}
    </>
  );
}
