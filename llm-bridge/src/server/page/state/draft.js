// What is written and attached for the next message of each chat, and not sent yet.

import { computed, signal } from '../vendor/signals.js';
import { prefer, preference } from './storage.js';
import { chat } from './store.js';

/** @import { Attachment, Picked } from './types.d.ts' */
/** @typedef {{ files: Attachment[], fault: string, refused: Picked[] }} Draft what is attached, why something was not, and what may be shared instead */
/** @typedef {import('../vendor/signals.js').Signal<Draft>} DraftSignal */

/** The name of the chat that is not begun yet. */
const NEW = 'new';

/** @type {Map<string, DraftSignal>} */
const drafts = new Map();

/** @returns {Draft} */
export const emptyDraft = () => ({ files: [], fault: '', refused: [] });

/** What belongs to the chat that is shown; it stays the same when that gets its id. */
export const draft = computed(() => {
  const of = chat.value.id ?? NEW;
  const known = drafts.get(of) ?? signal(emptyDraft());
  drafts.set(of, known);
  return known;
});

/** @param {string | null} id of the chat */
const key = (id) => `draft.${id ?? NEW}`;

/** @param {string | null} id */
export const written = (id) => preference(key(id), '');

/**
 * @param {string | null} id
 * @param {string} text
 */
export const write = (id, text) => prefer(key(id), text || null);

/**
 * The new chat has got this id: what is not sent stays in the field.
 * @param {string} id
 */
export function begunAs(id) {
  write(id, written(null));
  write(null, '');
  const held = drafts.get(NEW);
  drafts.delete(NEW);
  if (held) drafts.set(id, held);
}
