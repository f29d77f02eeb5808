// The documents of the chat that is shown: its tools find them, and nobody else.

import { effect, signal } from '../vendor/signals.js';
import * as api from './api.js';
import { t } from './language.js';
import { chat, chats, failure, isShown, said } from './store.js';
import { ensured } from './turn.js';

/** @import { Chat } from './types.d.ts' */
/** @typedef {{ name: string, passages: number | null }} ChatDocument `passages` is `null` while it is sent and read */

export const chatDocuments = signal(/** @type {ChatDocument[]} */ ([]));

/** @type {string | null} */
let of = null;
/** @type {object | undefined} */
let begunBy;

/** Shows those of each chat that is opened. */
export function watchChatDocuments() {
  effect(() => {
    const { id, begun } = chat.value;
    if ((id === of && begun === begunBy) || (id !== null && chats.value === null)) return;
    // A chat that was begun for a document has it already.
    if (!begun || begun !== begunBy) chatDocuments.value = [];
    [of, begunBy] = [id, begun];
    if (id !== null) queueMicrotask(() => load(id));
  });
}

/** @param {string} id */
async function load(id) {
  try {
    const there = await api.chatDocuments(id);
    const coming = chatDocuments.value.filter(({ passages, name }) => passages === null && !there.some((one) => one.name === name));
    if (of === id) chatDocuments.value = [...there, ...coming];
  } catch {
    // The server keeps none.
  }
}

/**
 * Adds a document to a chat, which is begun where it is new.
 * @param {Chat} to
 * @param {string} name
 * @param {File} file
 * @throws when it is not added
 */
export async function addToChat(to, name, file) {
  if (isShown(to)) chatDocuments.value = [...chatDocuments.value.filter((other) => other.name !== name), { name, passages: null }];
  let id = null;
  try {
    id = await ensured(to);
    await api.addChatDocument(id, name, file);
    said.value = t.addedToChat(name);
  } finally {
    if (isShown(to)) chatDocuments.value = chatDocuments.value.filter((other) => other.name !== name || other.passages !== null);
    if (id !== null) await load(id);
  }
}

/** @param {string} name */
export async function removeFromChat(name) {
  const { id } = chat.value;
  if (id === null) return;
  try {
    await api.removeChatDocument(id, name);
    said.value = t.removed(name);
  } catch (error) {
    failure.value = /** @type {Error} */ (error).message;
  }
  await load(id);
}
