// The list of the chats that the server keeps; where it keeps none, the chat that the tab keeps.

import * as api from './api.js';
import { recall, remember } from './storage.js';
import { chat, chats, failure, moreChats } from './store.js';

/** @import { Chat } from './types.d.ts' */

const KEY = 'conversation';
let words = '';

/**
 * Lists the chats in which these words are, or all.
 * @param {string} [search]
 */
export async function list(search = words) {
  words = search;
  try {
    const found = await api.chats(search ? { search } : {});
    // Another word may have been typed meanwhile.
    if (search !== words) return;
    chats.value = found.chats;
    moreChats.value = found.next;
    // The model may have named it meanwhile.
    const title = found.chats.find(({ id }) => id === chat.value.id)?.title;
    if (title !== undefined && title !== chat.value.title) chat.value = { ...chat.value, title };
  } catch (error) {
    // Kept nowhere, or by an older server.
    if (error instanceof api.Refused && error.status === 404) chats.value = null;
    else failure.value = /** @type {Error} */ (error).message;
  }
}

/** Lists those that come next. */
export async function listMore() {
  if (!moreChats.value) return;
  const found = await api.chats({ after: moreChats.value, ...(words ? { search: words } : {}) });
  const known = new Set(chats.value?.map(({ id }) => id));
  chats.value = [...(chats.value ?? []), ...found.chats.filter(({ id }) => !known.has(id))];
  moreChats.value = found.next;
}

/** The chat that the tab keeps. */
export function kept() {
  const found = recall(KEY, /** @type {Chat | null} */ (null));
  return found?.messages ? found : null;
}

/** Keeps the chat in this tab: without its first messages where there is not room for all. */
export function keep() {
  if (chats.value !== null) return;
  const { messages, ...about } = chat.value;
  for (let from = 0; from <= messages.length; from += 2) {
    const [first, ...rest] = messages.slice(from);
    if (remember(KEY, { ...about, messages: first ? [{ ...first, parent: null }, ...rest] : [] })) return;
  }
}
