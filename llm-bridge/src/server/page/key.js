// The key of a server that asks for one. It lives as long as the tab.

import { el } from './dom.js';
import { recall, remember } from './storage.js';

const KEY = 'key';
let key = recall(KEY, '');
let asking = null;

/** The key that was given, or an empty text. */
export function givenKey() {
  return key;
}

/**
 * Asks for the key, once for all requests that wait for it. Tells whether there
 * is another one than `refused` to try.
 */
export async function askKey(refused) {
  if (key !== refused) return true;
  asking ??= show(refused !== '').finally(() => { asking = null; });
  return asking;
}

function show(again) {
  const field = el('input', { type: 'password', id: 'key', autocomplete: 'off', spellcheck: 'false', required: true,
    pattern: '[!-~]+', title: 'Letters, digits and signs, without spaces' });
  const dialog = el('dialog', { id: 'key-dialog', 'aria-labelledby': 'key-title' },
    el('form', { onsubmit: take },
      el('h2', { id: 'key-title' }, 'This server asks for a key'),
      el('p', {}, again ? 'It does not take the key that was given.' : 'It is the one that the server was started with, as TOOLRACK_API_KEY.'),
      el('label', { class: 'unseen', for: 'key' }, 'Key'),
      field,
      el('div', { class: 'buttons' },
        el('button', { type: 'button', onclick: () => dialog.close() }, 'Not now'),
        el('button', { type: 'submit' }, 'Use the key'))));
  let given = false;

  function take(event) {
    event.preventDefault();
    key = field.value;
    remember(KEY, key);
    given = true;
    dialog.close();
  }

  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(given);
    });
  });
}
