/**
 * What is said where the server takes its time with something the user asked for.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** How long nothing is said, ms. */
const QUIET_MS = 1000;

/** Do something; say that it is under way when it takes long. */
export async function patiently<T>(
  action: () => Promise<T>,
  trans: TranslationBundle
): Promise<T> {
  const words = trans.__('Waiting for the server…');
  let notice = '';
  const timer = setTimeout(() => {
    const told = Notification.manager.notifications;
    // Once, also where many things are waited for.
    if (told.every(each => each.message !== words)) {
      notice = Notification.emit(words, 'in-progress', { autoClose: false });
    }
  }, QUIET_MS);
  try {
    return await action();
  } finally {
    clearTimeout(timer);
    if (notice) {
      Notification.dismiss(notice);
    }
  }
}
