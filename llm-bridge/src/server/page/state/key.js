// The key of a server that asks for one. It lives as long as the tab.

import { signal } from '../vendor/signals.js';
import { forget, recall, remember } from './storage.js';

const KEY = 'key';
let key = recall(KEY, '');
/** @type {Promise<boolean> | null} */
let asking = null;

/** The dialog that asks for the key, while it is open: whether one was refused, and who waits for the answer. */
export const keyDialog = signal(/** @type {{ again: boolean, close: (given: string | null) => void } | null} */ (null));

/** The key that was given, or an empty text. */
export function givenKey() {
  return key;
}

/** Forgets the chat that the tab keeps and what is written and not sent: whoever comes next is another. */
export function forgetWritten() {
  for (const begin of ['conversation', 'draft.']) forget(begin);
}

/** Forgets the key, and what was written with it, and opens the page anew. */
export function signOut() {
  remember(KEY, '');
  forgetWritten();
  location.reload();
}

/**
 * Asks for the key, once for all requests that wait for it. Tells whether there is another one than `refused` to try.
 * @param {string} refused
 */
export async function askKey(refused) {
  if (key !== refused) return true;
  asking ??= new Promise((resolve) => {
    keyDialog.value = {
      again: refused !== '',
      close(given) {
        if (given !== null) {
          key = given;
          remember(KEY, key);
        }
        keyDialog.value = null;
        asking = null;
        resolve(given !== null);
      },
    };
  });
  return asking;
}
