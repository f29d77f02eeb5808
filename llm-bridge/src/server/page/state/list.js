// The list of the chats that the server keeps; where it keeps none, the chat that the tab keeps.

import * as api from './api.js';
import { recall, remember } from './storage.js';
import { chat, chats, chatsKnown, failure, moreChats } from './store.js';

/** @import { Chat } from './types.d.ts' */

const KEY = 'conversation';
/** By so many words the server searches at most. */
const MOST_WORDS = 8;
let words = '';
/** What the list was searched for. */
export const searched = () => words.toLowerCase().split(/\s+/).filter(Boolean);
/** How many pages of the list are shown. */
let pages = 1;
/** How often it was asked for: what is asked for last is shown. */
let asked = 0;

/**
 * Lists the chats in which these words are, or all.
 * @param {string} [search]
 */
export async function list(search = words) {
  if (search !== words) pages = 1;
  words = search;
  const number = asked += 1;
  const about = search ? { search: search.split(/\s+/).slice(0, MOST_WORDS).join(' ') } : {};
  try {
    let { chats: all, next } = await api.chats(about);
    for (let page = 1; page < pages && next; page += 1) {
      const more = await api.chats({ ...about, after: next });
      const known = new Set(all.map(({ id }) => id));
      [all, next] = [[...all, ...more.chats.filter(({ id }) => !known.has(id))], more.next];
    }
    if (number !== asked) return;
    chats.value = all;
    chatsKnown.value = true;
    moreChats.value = next;
    // The model may have named it meanwhile.
    const title = all.find(({ id }) => id === chat.value.id)?.title;
    if (title !== undefined && title !== chat.value.title) chat.value = { ...chat.value, title };
  } catch (error) {
    // Kept nowhere, or by an older server.
    if (error instanceof api.Refused && error.status === 404) chats.value = null;
    else failure.value = /** @type {Error} */ (error).message;
  }
}

/** Lists those that come next, too. */
export function listMore() {
  pages += 1;
  return list();
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
