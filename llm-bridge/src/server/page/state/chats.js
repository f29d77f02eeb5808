// The chats that the server keeps for its user: listed, opened, renamed, pinned, deleted. Where it keeps none, the tab keeps one.

import { textOf } from './answer.js';
import * as api from './api.js';
import { download } from './download.js';
import { forgetDraft, unqueue } from './draft.js';
import { t } from './language.js';
import { keep, kept, list, searched } from './list.js';
import { prefer } from './storage.js';
import { chat, chats, emptyChat, failure, preferred, said, shown, sought } from './store.js';
import { newest } from './tree.js';
import { follow, follows, isUnsent, leave, sendNext } from './turn.js';

/** @import { Chat, Listed, Settings } from './types.d.ts' */

/** Asks the server for the chats, and opens the one that the address names. */
export async function begin() {
  await list();
  if (chats.value === null) {
    chat.value = kept() ?? chat.value;
    unqueue();
  } else {
    addEventListener('hashchange', () => open(named()));
    document.addEventListener('visibilitychange', () => { if (!document.hidden) again(); });
    // Who has sent something meanwhile goes on with that.
    if (!follows()) await open(named());
  }
}

const named = () => decodeURIComponent(location.hash.slice(1)) || null;

/** How often another chat was asked for: what is asked for last is shown, whichever comes last. */
let asked = 0;

/**
 * Shows a chat; `null` is a new one.
 * @param {string | null} id
 * @param {string} [message] one of it that a search has found
 */
export async function open(id, message) {
  const number = asked += 1;
  if (id === chat.value.id && id !== null) {
    if (message) seek(message);
    return;
  }
  if (id === null) {
    leave();
    sought.value = null;
    chat.value = emptyChat();
    unqueue();
    return;
  }
  try {
    const { turn, ...found } = await api.chat(id);
    if (number !== asked) return;
    leave();
    sought.value = null;
    place(found, turn);
    // The answer that it waited for has ended meanwhile.
    if (!turn) sendNext(shown.value.at(-1));
    if (message) seek(message);
  } catch (error) {
    if (number !== asked) return;
    failure.value = /** @type {Error} */ (error).message;
  }
  // Also where the chat before stays, or has got its address meanwhile.
  history.replaceState(null, '', chat.value.id === null ? location.pathname + location.search : `#${chat.value.id}`);
}

/**
 * Shows a message, here alone: the branch on which one goes on stays the same elsewhere.
 * @param {string} message
 */
function seek(message) {
  const { messages } = chat.value;
  if (!messages.some(({ id }) => id === message)) return;
  if (!shown.value.some(({ id }) => id === message)) chat.value = { ...chat.value, leaf: newest(messages, message) };
  sought.value = { message, words: searched() };
}

/** Looks again, as another device may have gone on. */
async function again() {
  await list();
  const before = chat.value;
  const { id, messages } = before;
  // What could not be sent is nowhere else.
  if (id === null || follows() || messages.some((message) => isUnsent(message.id))) return;
  try {
    const { turn, ...found } = await api.chat(id);
    if (sought.value && found.messages.some((message) => message.id === before.leaf)) found.leaf = before.leaf;
    if (follows() || chat.value !== before || (!turn && outline(found) === outline(before))) return;
    place(found, turn);
  } catch {
    // It says so when something is done with it.
  }
}

/**
 * By what a chat is told from the same one before something was done with it.
 * @param {Chat} of
 */
const outline = ({ messages, leaf, settings }) =>
  JSON.stringify([leaf, settings, messages.map((message) => [message.id, message.status, message.finish_reason, message.parts.length, textOf(message).length])]);

/**
 * @param {Chat} found
 * @param {{ message: string, position: number } | null} turn
 */
function place(found, turn) {
  chat.value = found;
  const running = turn && found.messages.find((message) => message.id === turn.message);
  if (running && found.id !== null) follow(found.id, running, turn.position);
}

/** Begins a new chat. Where the server keeps none, the one before is gone. */
export async function startNew() {
  asked += 1;
  leave();
  sought.value = null;
  chat.value = emptyChat();
  unqueue();
  if (chats.value === null) keep();
  else if (location.hash) history.pushState(null, '', location.pathname + location.search);
}

/**
 * Changes title or pin, here at once.
 * @param {Listed} listed
 * @param {{ title?: string, pinned?: boolean }} change
 */
export async function change(listed, change) {
  chats.value = chats.value?.map((other) => (other.id === listed.id ? { ...other, ...change } : other)) ?? null;
  if (chat.value.id === listed.id && change.title !== undefined) chat.value = { ...chat.value, title: change.title };
  await attempt(() => api.changeChat(listed.id, change));
  await list();
}

/** @param {Listed} listed */
export async function remove(listed) {
  await attempt(async () => {
    await api.deleteChat(listed.id);
    // For good: also what was written there and not sent.
    forgetDraft(listed.id);
  });
  said.value = t.deleted(listed.title || t.untitled);
  if (chat.value.id === listed.id) await startNew();
  await list();
}

/**
 * Saves a chat as a file.
 * @param {Listed} listed
 * @param {'markdown' | 'json'} format
 */
export async function exported(listed, format) {
  await attempt(async () => download(await api.exportChat(listed.id, format), `${listed.title || 'chat'}.${format === 'json' ? 'json' : 'md'}`));
}

/**
 * Changes what holds for this chat.
 * @param {Settings} settings
 */
export async function set(settings) {
  chat.value = { ...chat.value, settings: { ...chat.value.settings, ...settings } };
  const { id } = chat.value;
  if (id !== null && chats.value !== null) await attempt(() => api.changeChat(id, { settings }));
  else keep();
}

/**
 * Chooses the model of this chat; one that is not begun says what new ones take.
 * @param {string} name
 */
export function chooseModel(name) {
  if (chat.value.messages.length === 0) {
    prefer('model', name);
    preferred.value = name;
  }
  return set({ model: name });
}

/**
 * Shows the branch of another message.
 * @param {string} message
 */
export async function show(message) {
  const { id, messages } = chat.value;
  chat.value = { ...chat.value, leaf: newest(messages, message) };
  if (id !== null && chats.value !== null && !isUnsent(message)) await attempt(() => api.changeChat(id, { leaf: message }));
  else keep();
}

/**
 * Deletes a message with all that follow it.
 * @param {string} message
 */
export async function removeMessage(message) {
  const { id, messages } = chat.value;
  if (id !== null && chats.value !== null && !isUnsent(message)) {
    await attempt(async () => {
      await api.deleteMessage(id, message);
      const { turn, ...now } = await api.chat(id);
      if (chat.value.id === id) place(now, turn);
    });
    return;
  }
  const gone = new Set([message]);
  for (const other of messages) if (other.parent !== null && gone.has(other.parent)) gone.add(other.id);
  const parent = messages.find((other) => other.id === message)?.parent ?? null;
  const left = messages.filter((other) => !gone.has(other.id));
  const beside = left.findLast((other) => other.parent === parent);
  chat.value = { ...chat.value, messages: left, leaf: beside ? newest(left, beside.id) : parent };
  keep();
}

/** @type {Promise<unknown>} */
let before = Promise.resolve();

/**
 * Does one change after the other, as they were made, and says which could not be done.
 * @param {() => Promise<unknown>} action
 */
async function attempt(action) {
  const done = before.then(action);
  before = done.catch(() => {});
  try {
    await done;
  } catch (error) {
    failure.value = /** @type {Error} */ (error).message;
  }
}
