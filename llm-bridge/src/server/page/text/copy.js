// The clipboard.

import { t } from '../state/language.js';
import { said } from '../state/store.js';

/** How long it is said in place of a button's word, in milliseconds. */
const SAID = 1500;

/**
 * Copies a text, and says for a while how that went.
 * @param {string} text
 * @param {(word: string | null) => void} show gets `null` when that is over
 */
export async function copyText(text, show) {
  const word = (await written(text)) ? t.copied : t.notCopied;
  said.value = word;
  show(word);
  setTimeout(() => show(null), SAID);
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
