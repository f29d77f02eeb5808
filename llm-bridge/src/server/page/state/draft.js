// What is written and attached for the next messages of each chat, and not sent yet.

import { computed, signal } from '../vendor/signals.js';
import { prefer, preference, recall, remember } from './storage.js';
import { chat } from './store.js';

/** @import { Attachment, Picked } from './types.d.ts' */
/** @import { Content } from './turn.js' */
/** @typedef {{ text: string, files: Attachment[], content: Content }} Queued what is sent when the answer before it is complete */
/** @typedef {{ files: Attachment[], fault: string, refused: Picked[], queue: Queued[] }} Draft what is attached, why something was not, and what may be shared instead */
/** @typedef {import('../vendor/signals.js').Signal<Draft>} DraftSignal */

/** The name of the chat that is not begun yet. */
const NEW = 'new';

/** @type {Map<string, DraftSignal>} */
const drafts = new Map();

/** @param {string | null} id of the chat */
const key = (id) => `draft.${id ?? NEW}`;

/** @param {string | null} id */
const queueKey = (id) => `${key(id)}.queue`;

/**
 * @param {string | null} id
 * @returns {Draft}
 */
const newDraft = (id) => ({ files: [], fault: '', refused: [], queue: recall(queueKey(id), /** @type {string[]} */ ([])).map((text) => ({ text, files: [], content: text })) });

/** What belongs to the chat that is shown; it stays the same when that gets its id. */
export const draft = computed(() => {
  const { id } = chat.value;
  const known = drafts.get(id ?? NEW) ?? signal(newDraft(id));
  drafts.set(id ?? NEW, known);
  return known;
});

/** @param {string | null} id */
export const written = (id) => preference(key(id), '');

/**
 * @param {string | null} id
 * @param {string} text
 */
export const write = (id, text) => prefer(key(id), text || null);

/** Counts how often something has come back into the field. */
export const cameBack = signal(0);

/** @param {Queued[]} queue of the chat that is shown; their texts outlive the page */
function setQueue(queue) {
  draft.value.value = { ...draft.value.value, queue };
  remember(queueKey(chat.value.id), queue.length > 0 ? queue.map(({ text }) => text) : null);
}

/** @param {Queued} message */
export const enqueue = (message) => setQueue([...draft.value.value.queue, message]);

/** The message that is next in the chat that is shown, which waits no longer. */
export function nextQueued() {
  const [first, ...rest] = draft.value.value.queue;
  if (first) setQueue(rest);
  return first;
}

/**
 * Messages that are not to be sent are in the field again, before what is written there.
 * @param {Queued[]} messages
 */
export function unqueue(messages = draft.value.value.queue) {
  if (messages.length === 0) return;
  const { id } = chat.value;
  const { files, queue } = draft.value.value;
  setQueue(queue.filter((other) => !messages.includes(other)));
  draft.value.value = { ...draft.value.value, files: [...messages.flatMap((one) => one.files), ...files] };
  write(id, [...messages.map(({ text }) => text), written(id)].filter(Boolean).join('\n\n'));
  cameBack.value += 1;
}

/**
 * Forgets what is not sent of a chat that is gone.
 * @param {string} id
 */
export function forgetDraft(id) {
  write(id, '');
  remember(queueKey(id), null);
  drafts.delete(id);
}

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
  remember(queueKey(id), recall(queueKey(null), null));
  remember(queueKey(null), null);
}
