/**
 * A dialog that asks for a text, and keeps what was typed until it is saved.
 */
import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { UUID } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';

import { describeError } from '../api/client';
import { patiently } from './patience';

/** What saves where Enter begins a line. */
const SAVE_KEYS = 'Accel Enter';

/** What to ask. */
export interface IQuestion {
  readonly title: string;
  /** What the text is, or is good for. */
  readonly label: string;
  /** What is there at first. */
  readonly text: string;
  /** Whether that has been typed already: it is asked for only where it cannot be saved. */
  readonly isTyped?: boolean;
  /** Whether it may have several lines. */
  readonly isLong?: boolean;
  readonly okLabel: string;
  /** Does something with the answer. */
  readonly save: (text: string) => Promise<void>;
}

/** Ask for a text until it is saved or the user gives up. */
export async function askText(
  question: IQuestion,
  trans: TranslationBundle
): Promise<void> {
  let { text } = question;
  let error = question.isTyped ? await trySave(question, text, trans) : '';
  while (!question.isTyped || error) {
    const answer = await new TextDialog({
      title: question.title,
      body: new TextBody({
        ...question,
        text,
        error,
        hint: question.isLong
          ? trans.__('%1 saves', CommandRegistry.formatKeystroke(SAVE_KEYS))
          : ''
      }),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: question.okLabel })
      ],
      focusNodeSelector: 'input, textarea'
    }).launch();
    if (!answer.button.accept || answer.value === null) {
      return;
    }
    text = answer.value;
    error = await trySave(question, text, trans);
    if (!error) {
      return;
    }
  }
}

/** Save; answers why it could not be, or nothing. */
async function trySave(
  question: IQuestion,
  text: string,
  trans: TranslationBundle
): Promise<string> {
  try {
    await patiently(() => question.save(text), trans);
    return '';
  } catch (error) {
    return describeError(error);
  }
}

/** A dialog in which Enter begins a line where there may be several; with Ctrl or Cmd it saves. */
class TextDialog extends Dialog<string> {
  override handleEvent(event: Event): void {
    const isLine =
      event instanceof KeyboardEvent &&
      event.type === 'keydown' &&
      event.key === 'Enter' &&
      event.target instanceof HTMLTextAreaElement;
    if (!isLine) {
      super.handleEvent(event);
    } else if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      event.stopPropagation();
      this.resolve();
    } else {
      // Neither for shortcuts of the application.
      event.stopPropagation();
    }
  }
}

/** The field, what it is, how it is saved, and why the last answer could not be saved. */
class TextBody extends Widget implements Dialog.IBodyWidget<string> {
  constructor(options: {
    readonly label: string;
    readonly text: string;
    readonly error: string;
    readonly hint: string;
    readonly isLong?: boolean;
  }) {
    super();
    this.addClass('jp-TdbgAsk');
    const label = document.createElement('label');
    label.textContent = options.label;
    this._field = document.createElement(options.isLong ? 'textarea' : 'input');
    this._field.id = label.htmlFor = `jp-TdbgAsk-${UUID.uuid4()}`;
    this._field.className = 'jp-mod-styled jp-TdbgAsk-field';
    this._field.classList.toggle('jp-mod-long', options.isLong ?? false);
    this._field.dir = 'auto';
    this._field.value = options.text;
    this.node.append(label, this._field);
    if (options.hint) {
      const hint = document.createElement('p');
      hint.id = `${this._field.id}-hint`;
      hint.className = 'jp-TdbgAsk-hint';
      hint.textContent = options.hint;
      this._field.setAttribute('aria-describedby', hint.id);
      this.node.append(hint);
    }
    if (options.error) {
      const error = document.createElement('p');
      error.className = 'jp-TdbgAsk-error';
      error.setAttribute('role', 'alert');
      error.textContent = options.error;
      this.node.append(error);
    }
  }

  getValue(): string {
    return this._field.value;
  }

  private _field: HTMLInputElement | HTMLTextAreaElement;
}
