// The one store: what the page knows. Components read it and follow its changes; the other files of this folder change it.

import { computed, signal } from '../vendor/signals.js';
import { branch } from './tree.js';
import { preference, recall } from './storage.js';

/** @import { Account, Chat, Health, Listed, Message, RuleScope, Session, Tool, Source } from './types.d.ts' */

/** @returns {Chat} */
export const emptyChat = () => ({ id: null, begun: {}, title: '', settings: {}, messages: [], leaf: null });

/** The server's state. */
export const health = signal(/** @type {Health | null} */ (null));
/** Who has signed in with a provider; `null` for everybody else. */
export const session = signal(/** @type {Session | null} */ (null));
/** As whom the page asks; `null` until it is known. */
export const account = signal(/** @type {Account | null} */ (null));
/** Why the server cannot be reached. */
export const unreachable = signal('');
/** Why the model server gives no list of models. */
export const modelsFailure = signal('');
/** The state of the build under `toolrack dev`. */
export const build = signal({ state: 'current', message: '' });

/** The names of the models on offer, and the one that a new chat takes. */
export const models = signal(/** @type {string[]} */ ([]));
export const preferred = signal(preference('model', ''));

export const tools = signal(/** @type {Tool[]} */ ([]));
/** Whether the server has said which tools there are, and which chats: until then there are not none. */
export const toolsKnown = signal(false);
export const chatsKnown = signal(false);
export const toolsFailure = signal('');

/** The chat that is shown, and those that there are; `null` where the server keeps none. */
export const chat = signal(emptyChat());
export const chats = signal(/** @type {Listed[] | null} */ ([]));
export const moreChats = signal(/** @type {string | null} */ (null));

/**
 * Whether this chat is the one that is shown, also where it has got its id meanwhile.
 * @param {Chat} of
 */
export const isShown = ({ id, begun }) => (begun ? chat.value.begun === begun : chat.value.id === id);

/** The branch of the chat that is shown. */
export const shown = computed(() => branch(chat.value.messages, chat.value.leaf));
/** The answer that is being made in the chat, on whichever branch; a new object each time it has grown. */
export const running = computed(() => {
  const answer = chat.value.messages.findLast((message) => changes(message).value >= 0 && message.status === 'running');
  return answer ? { ...answer } : null;
});
/** Whether there is one: it changes only twice in a turn, whatever comes. */
export const busy = computed(() => running.value !== null);

/** The model of the chat: the one that is chosen for it, or that has answered last, or that a new chat takes, or the server's. */
export const model = computed(() => {
  const answered = shown.value.findLast(({ role }) => role === 'assistant')?.model;
  return [chat.value.settings.model, answered, preferred.value, health.value?.model].find((name) => name && isOffered(name)) ?? models.value[0] ?? '';
});

/** The models that are known to see no pictures. */
export const blindModels = signal(/** @type {string[]} */ ([]));

/** The `type` of a failure at pictures. */
export const PICTURES_REFUSED = 'pictures_refused';

/** Whether the model of the chat sees no pictures: as the server says, or as it has refused some here. */
export const isBlind = computed(() => blindModels.value.includes(model.value)
  || chat.value.messages.some((message) => changes(message).value >= 0 && message.error?.type === PICTURES_REFUSED && message.model === model.value));

/**
 * Whether a model can be asked, as far as that is known.
 * @param {string} name
 */
export const isOffered = (name) => models.value.length === 0 || models.value.includes(name);

/** What lies over or beside the chat. */
export const toolsOpen = signal(false);
export const chatsOpen = signal(recall('chats-open', true));
export const dialog = signal(/** @type {'' | 'documents' | 'settings' | 'inbox'} */ (''));

/** The passage of a document that is open. */
export const passage = signal(/** @type {Source | null} */ (null));

/** The message that a search has found, and its words, where that was opened. */
export const sought = signal(/** @type {{ message: string, words: string[] } | null} */ (null));

/** Why something could not be done, for a while. */
export const failure = signal('');
/** The short text that screen readers say. */
export const said = signal('');

/** What the person has to answer, in all chats. */
export const waiting = signal(/** @type {{ id: string, tool: string, user?: string, arguments?: unknown, message?: string, reason?: string | null, expires_at: string, kind: 'approval' | 'question', remember?: RuleScope[] }[]} */ ([]));

/** @type {WeakMap<Message, import('../vendor/signals.js').Signal<number>>} */
const versions = new WeakMap();

/**
 * A message grows in place; who shows it reads this.
 * @param {Message} message
 */
export function changes(message) {
  let version = versions.get(message);
  if (!version) versions.set(message, version = signal(0));
  return version;
}

/** @type {Set<Message>} */
const touched = new Set();

/**
 * Says that a message has grown. However fast that goes, it is drawn once a frame.
 * @param {Message} message
 */
export function touch(message) {
  if (touched.size === 0) frame(() => {
    const all = [...touched];
    touched.clear();
    for (const one of all) changes(one).value += 1;
  });
  touched.add(message);
}

/**
 * Before the next frame. A hidden tab has none, and goes on all the same.
 * @param {() => void} run
 */
function frame(run) {
  let ran = false;
  const once = () => {
    if (!ran) run();
    ran = true;
  };
  requestAnimationFrame(once);
  setTimeout(once, 100);
}
