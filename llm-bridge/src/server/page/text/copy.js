// The clipboard.

import { t } from '../state/language.js';
import { said } from '../state/store.js';

/**
 * Copies a text; tells whether it could.
 * @param {string} text
 */
export async function copyText(text) {
  const done = await written(text);
  said.value = done ? t.copied : t.notCopied;
  return done;
}

/** @param {string} text */
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return bySelection(text);
  }
}

/**
 * The clipboard interface exists only on https and localhost; a server in the home network is reached over plain http.
 * @param {string} text
 */
function bySelection(text) {
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.value = text;
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  before?.focus();
  return copied;
}
