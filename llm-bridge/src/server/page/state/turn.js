// A turn: from a question to the model's last word. The server runs those of its chats, whether anybody looks or not, and the page
// follows. Where no chats are kept, the page asks as any client of the API does.

import * as api from './api.js';
import { end, replace, take, textOf } from './answer.js';
import { begunAs, nextQueued, unqueue, write, written } from './draft.js';
import { t } from './language.js';
import { keep, list } from './list.js';
import { chat, chats, failure, isOffered, isShown, model, said, shown, touch, unreachable } from './store.js';
import { branch } from './tree.js';

/** @import { Chat, Message, Settings } from './types.d.ts' */
/** @typedef {string | Record<string, unknown>[]} Content a text, or parts as in chat completions */
/** @typedef {{ parent?: string | null, content?: Content, regenerate?: string, continue?: string, answer?: string, model?: string, without_pictures?: boolean }} Start */

/**
 * @typedef {object} Followed
 * @property {AbortController} controller ends the following, and not the turn
 * @property {Message} message the answer
 * @property {string | null} id of the chat, once its turn is known to the server
 * @property {boolean} stops whether it is stopped as soon as it is
 */

/** @type {Followed | null} */
let followed = null;
/** What an answer was asked for that has not begun. @type {WeakMap<Message, Start>} */
const unsent = new WeakMap();
/** By which model an answer was asked for, where that was said. @type {WeakMap<Message, string>} */
const named = new WeakMap();
let made = 0;

/** How long after a failure the turn is looked for again, in milliseconds: at first, and at most. */
const SOON = 1_000;
const LATER = 15_000;

/** When it is looked whether the model has named a chat. */
const NAMED = [4_000, 15_000, 40_000, 65_000];

/** Ids of messages that the server does not know. */
const UNSENT = 'new-';

/**
 * Whether the server has never got a message.
 * @param {string} id
 */
export const isUnsent = (id) => chats.value !== null && id.startsWith(UNSENT);

/**
 * A new message behind the last one that the server knows. Like all that start a turn it tells whether it is taken: one runs at a time.
 * @param {Content} content
 */
export const ask = (content) => start({ parent: shown.value.findLast(({ id }) => !isUnsent(id))?.id ?? null, content });

/**
 * Sends what waits for an answer that has ended; where that is not complete, the person has another look at it.
 * @param {Message | undefined} answer
 */
export function sendNext(answer) {
  if (answer?.status !== 'done') return unqueue();
  const next = nextQueued();
  if (next) start({ parent: answer.id, content: next.content });
}

/**
 * The message anew, with another text.
 * @param {Message} message
 * @param {Content} content
 */
export const edit = (message, content) => start({ parent: message.parent, content });

/**
 * Another answer beside this one, by the same model. What has failed is tried with the one that is chosen by now.
 * @param {Message} message
 * @param {string} [other] another model
 */
export function regenerate(message, other) {
  if (followed) return false;
  const begun = unsent.get(message);
  const by = of(other ?? (message.status === 'failed' ? named.get(message) : message.model));
  if (chats.value === null && message.status === 'failed') {
    chat.value = { ...chat.value, messages: chat.value.messages.filter((one) => one !== message), leaf: message.parent };
    return start({ answer: message.parent ?? '', ...by });
  }
  if (!begun) return start({ regenerate: message.id, ...by });
  // The server has never seen it.
  if (begun.continue === undefined) {
    const gone = new Set(begun.content === undefined ? [message.id] : [message.id, message.parent]);
    chat.value = { ...chat.value, messages: chat.value.messages.filter(({ id }) => !gone.has(id)), leaf: begun.parent ?? begun.regenerate ?? null };
  }
  return start({ ...begun, ...by });
}

/**
 * Another answer, by a model that gets a description in place of the pictures.
 * @param {Message} message
 */
export const askWithoutPictures = (message) => start({ regenerate: message.id, without_pictures: true, ...of(message.model) });

/**
 * Goes on with an answer that was cut off.
 * @param {Message} message
 */
export const goOn = (message) => start({ continue: message.id, ...of(message.model) });

/**
 * A model to ask, where it is still offered.
 * @param {string | null | undefined} name
 */
const of = (name) => (name && isOffered(name) ? { model: name } : {});

/**
 * Goes on with the answer of which a tool has asked this, where its server has ended meanwhile.
 * @param {string} question
 */
export function answered(question) {
  const asks = (/** @type {Message} */ { status, parts }) => status === 'cut_off' && parts.some((part) => part.type === 'call' && part.question?.id === question);
  const message = chat.value.messages.find(asks);
  if (message) goOn(message);
}

/** Stops the running turn, or the one that is about to run. */
export function stop() {
  if (!followed) return;
  if (chats.value === null) followed.controller.abort();
  else if (followed.id === null) followed.stops = true;
  else halt(followed.id);
}

/** @param {string} id */
async function halt(id) {
  try {
    await api.stopTurn(id);
  } catch (error) {
    failure.value = /** @type {Error} */ (error).message;
  }
}

/** Whether a turn is followed. */
export const follows = () => followed !== null;

/** Stops following a turn, which goes on where the server runs it. */
export function leave() {
  followed?.controller.abort();
  followed = null;
}

/** @param {Start} begun */
function start(begun) {
  if (followed) return false;
  const { question, answer } = placed(begun);
  if (begun.model) named.set(answer, begun.model);
  followed = { controller: new AbortController(), message: answer, id: null, stops: false };
  if (chats.value === null) local(followed);
  else run(begun, question, followed);
  return true;
}

/**
 * Lets the server answer, in the chat that is shown now, whichever is shown by then.
 * @param {Start} begun
 * @param {Message | null} question
 * @param {Followed} turn
 */
async function run(begun, question, turn) {
  const { message: answer, controller: { signal } } = turn;
  /** @type {string | null} */
  let id = null;
  try {
    const by = begun.model ?? model.value;
    id = await ensured();
    const now = await api.startTurn(id, { ...begun, ...(by ? { model: by } : {}) });
    turn.id = id;
    if (turn.stops) halt(id);
    list();
    if (signal.aborted) return;
    if (question && now.message) Object.assign(question, now.message);
    const before = answer.id;
    replace(answer, { ...now.answer, parts: begun.continue ? answer.parts : now.answer.parts });
    chat.value = { ...chat.value, messages: [...chat.value.messages], leaf: chat.value.leaf === before ? answer.id : chat.value.leaf };
    await through(turn, id, now.turn.position);
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    unsent.set(answer, begun);
    end(answer, 'failed', message);
    if (followed === turn) followed = null;
    if (!signal.aborted) return sendNext(answer);
    // Another chat is shown; there the text waits in the field.
    failure.value = message;
    if (question && !written(id)) write(id, textOf(question));
  }
}

/** By what a chat was begun. @type {WeakMap<object, Promise<string>>} */
const creating = new WeakMap();

/** The id of a chat, which is begun where it is new. */
export function ensured(of = chat.value) {
  const { id, begun = of } = of;
  if (id !== null) return Promise.resolve(id);
  let known = creating.get(begun);
  if (!known) {
    creating.set(begun, known = created(of));
    known.catch(() => creating.delete(begun));
  }
  return known;
}

/** @param {Chat} of */
async function created(of) {
  const { settings } = isShown(of) ? chat.value : of;
  const by = settings.model ?? ((isShown(of) && model.value) || null);
  const { id, title } = await api.newChat({ settings: settled({ ...settings, model: by }) });
  if (isShown(of)) {
    begunAs(id);
    chat.value = { ...chat.value, id, title, settings: { ...chat.value.settings, model: chat.value.settings.model ?? by } };
    history.pushState(null, '', `#${id}`);
  }
  return id;
}

/** @param {Settings} settings */
const settled = (settings) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null && value !== undefined));

/**
 * Follows the answer of a chat until it is done.
 * @param {string} id
 * @param {Message} message
 * @param {number} position
 */
export function follow(id, message, position) {
  followed = { controller: new AbortController(), message, id, stops: false };
  return through(followed, id, position);
}

/**
 * @param {Followed} turn
 * @param {string} id
 * @param {number} after
 */
async function through({ message, controller: { signal } }, id, after) {
  let pause = SOON;
  let told = '';
  const reached = () => {
    if (told && unreachable.value === told) unreachable.value = '';
    pause = SOON;
  };
  while (!signal.aborted && message.status === 'running') {
    try {
      for await (const { event, position: at, data } of api.turn(id, after, signal)) {
        reached();
        if (at) after = at;
        if (event) replace(message, data);
        else if (data.error) message.error = data.error;
        else take(message, data);
        if (message.status !== 'running') break;
      }
      if (message.status !== 'running') break;
      const now = await api.chat(id);
      if (signal.aborted) return;
      reached();
      const kept = now.messages.find((other) => other.id === message.id);
      if (kept) replace(message, kept);
      else end(message, 'failed', t.cutOff);
      after = now.turn?.position ?? after;
      if (message.status === 'running') await waited(SOON);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof api.Refused && error.status < 500 && error.status !== 429) {
        end(message, 'failed', error.message);
        break;
      }
      // The server is started again, or the device was asleep.
      unreachable.value = told = /** @type {Error} */ (error).message;
      await waited(pause);
      pause = Math.min(2 * pause, LATER);
    }
  }
  if (signal.aborted) return;
  followed = null;
  said.value = t.answerComplete;
  sendNext(message);
  await list();
  // The model names a chat after its first answer, which takes a slow one a minute.
  for (const ms of NAMED) setTimeout(() => { if (chats.value?.some((one) => one.id === id && one.titled_by === 'question')) list(); }, ms);
}

/** @param {number} ms */
const waited = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * Puts the question and the answer that begins where they belong, before the server knows.
 * @param {Start} begun
 */
function placed(begun) {
  const { messages } = chat.value;
  const id = () => `${UNSENT}${Date.now()}-${made += 1}`;
  const continued = begun.continue && messages.find((message) => message.id === begun.continue);
  if (continued) {
    Object.assign(continued, { status: 'running', finish_reason: null });
    touch(continued);
    return { question: null, answer: continued };
  }
  /** @type {Message | null} */
  const question = begun.content === undefined ? null
    : { id: id(), parent: begun.parent ?? null, role: 'user', status: 'done', parts: shownParts(begun.content) };
  const parent = question?.id ?? messages.find((message) => message.id === begun.regenerate)?.parent ?? begun.answer ?? null;
  /** @type {Message} */
  const answer = { id: id(), parent, role: 'assistant', status: 'running', parts: [], model: begun.model ?? (model.value || null) };
  chat.value = { ...chat.value, messages: [...messages, ...(question ? [question] : []), answer], leaf: answer.id };
  return { question, answer };
}

/**
 * @param {Content} content
 * @returns {Message['parts']}
 */
function shownParts(content) {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((/** @type {any} */ part) => {
    if (part.type === 'text') return part;
    if (part.type === 'image_url') return { type: 'image', url: part.image_url.url };
    return { type: 'file', name: part.file?.filename ?? part.type };
  });
}

/**
 * An answer without the server's chats.
 * @param {Followed} turn
 */
async function local(turn) {
  const began = performance.now();
  const { message: answer, controller } = turn;
  const { system, temperature, top_p, max_tokens, tools, persona } = chat.value.settings;
  const messages = forModel(branch(chat.value.messages, answer.parent));
  if (system) messages.unshift({ role: 'system', content: system });
  const toolrack = settled({ persona: persona ?? null, ...(tools ? { allowed_tools: tools } : {}) });
  const request = { ...settled({ temperature: temperature ?? null, top_p: top_p ?? null, max_tokens: max_tokens ?? null }), ...(answer.model ? { model: answer.model } : {}), messages, toolrack };
  try {
    for await (const chunk of api.complete(request, controller.signal)) take(answer, chunk);
    end(answer, 'done');
    said.value = t.answerComplete;
  } catch (error) {
    if (controller.signal.aborted) end(answer, 'stopped');
    else end(answer, 'failed', /** @type {Error} */ (error).message);
  }
  answer.duration_ms = performance.now() - began;
  touch(answer);
  keep();
  if (followed !== turn) return;
  followed = null;
  sendNext(answer);
}

/**
 * What the model gets to see: alternating roles, because many chat templates refuse two messages of one role in a row. A question that
 * only led to an error is left out, or a question that is too long would fail all that follow.
 * @param {Message[]} messages
 * @returns {{ role: string, content: any }[]}
 */
function forModel(messages) {
  /** @type {{ role: string, content: any }[]} */
  const sent = [];
  for (const message of messages) {
    if (message.role === 'assistant') {
      const content = textOf(message) || message.shown?.trim();
      if (content) sent.push({ role: 'assistant', content });
      else if (message.status === 'failed') sent.pop();
    } else {
      const content = given(message);
      const last = sent.at(-1);
      if (last?.role === 'user' && typeof last.content === 'string' && typeof content === 'string') last.content += `\n\n${content}`;
      else sent.push({ role: 'user', content });
    }
  }
  return sent;
}

/**
 * @param {Message} message
 * @returns {Content}
 */
function given(message) {
  const pictures = message.parts.flatMap((part) => (part.type === 'image' && part.url ? [{ type: 'image_url', image_url: { url: part.url } }] : []));
  return pictures.length === 0 ? textOf(message) : [{ type: 'text', text: textOf(message) }, ...pictures];
}
