// A turn: from a question to the model's last word. The server runs those of its chats, whether anybody looks or not, and the page
// follows. Where no chats are kept, the page asks as any client of the API does.

import * as api from './api.js';
import { end, replace, take, textOf } from './answer.js';
import { t } from './language.js';
import { keep, list } from './list.js';
import { prefer, preference } from './storage.js';
import { chat, chats, model, said, touch } from './store.js';
import { branch } from './tree.js';

/** @import { Message, Settings } from './types.d.ts' */
/** @typedef {string | Record<string, unknown>[]} Content a text, or parts as in chat completions */
/** @typedef {{ parent?: string | null, content?: Content, regenerate?: string, continue?: string, answer?: string, model?: string }} Start */

/** @type {{ controller: AbortController, message: Message, id: string | null } | null} */
let followed = null;
/** What an answer was asked for that has not begun. @type {WeakMap<Message, Start>} */
const unsent = new WeakMap();
let made = 0;

/**
 * A new message behind the last one.
 * @param {Content} content
 */
export const ask = (content) => start({ parent: chat.value.leaf, content });

/**
 * The message anew, with another text.
 * @param {Message} message
 * @param {Content} content
 */
export const edit = (message, content) => start({ parent: message.parent, content });

/**
 * Another answer beside this one.
 * @param {Message} message
 * @param {string} [other] another model
 */
export function regenerate(message, other) {
  const begun = unsent.get(message);
  if (chats.value === null && message.status === 'failed') {
    chat.value = { ...chat.value, messages: chat.value.messages.filter((one) => one !== message), leaf: message.parent };
    return start({ answer: message.parent ?? '' });
  }
  if (!begun) return start({ regenerate: message.id, ...(other ? { model: other } : {}) });
  // The server has never seen it.
  const gone = new Set([message.id, message.parent]);
  const messages = begun.content === undefined ? chat.value.messages.filter((one) => one !== message) : chat.value.messages.filter((one) => !gone.has(one.id));
  chat.value = { ...chat.value, messages, leaf: begun.parent ?? begun.regenerate ?? null };
  return start(begun);
}

/**
 * Goes on with an answer that was cut off.
 * @param {Message} message
 */
export const goOn = (message) => start({ continue: message.id });

/**
 * Goes on with the answer of which a tool has asked this, where its server has ended meanwhile.
 * @param {string} question
 */
export function answered(question) {
  const asks = (/** @type {Message} */ { status, parts }) => status === 'cut_off' && parts.some((part) => part.type === 'call' && part.question?.id === question);
  const message = chat.value.messages.find(asks);
  if (message) goOn(message);
}

/** Stops the running turn. */
export async function stop() {
  if (!followed) return;
  const { id, message, controller } = followed;
  if (id === null) controller.abort();
  else {
    try {
      await api.stopTurn(id);
    } catch (error) {
      end(message, 'stopped', /** @type {Error} */ (error).message);
    }
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
async function start(begun) {
  if (followed) return;
  const { question, answer } = placed(begun);
  if (chats.value === null) return local(answer);
  const controller = new AbortController();
  followed = { controller, message: answer, id: chat.value.id };
  try {
    const id = await ensured();
    followed.id = id;
    const body = { ...begun, ...(begun.model ?? model.value ? { model: begun.model ?? model.value } : {}) };
    const now = await api.startTurn(id, body);
    if (question && now.message) Object.assign(question, now.message);
    const before = answer.id;
    replace(answer, { ...now.answer, parts: begun.continue ? answer.parts : now.answer.parts });
    if (controller.signal.aborted) return;
    chat.value = { ...chat.value, messages: [...chat.value.messages], leaf: chat.value.leaf === before ? answer.id : chat.value.leaf };
    list();
    await follow(id, answer, now.turn.position);
  } catch (error) {
    unsent.set(answer, begun);
    end(answer, 'failed', /** @type {Error} */ (error).message);
    if (followed?.message === answer) followed = null;
  }
}

/** @type {Promise<string> | null} */
let creating = null;

/** The id of the chat that is shown, which is begun where it is new. */
export function ensured() {
  const { id } = chat.value;
  if (id !== null) return Promise.resolve(id);
  creating ??= created().finally(() => { creating = null; });
  return creating;
}

async function created() {
  const about = await api.newChat({ settings: settled(chat.value.settings) });
  // What is written and not sent stays in the field.
  prefer(`draft.${about.id}`, preference('draft.new', '') || null);
  prefer('draft.new', null);
  chat.value = { ...chat.value, id: about.id, title: about.title };
  history.pushState(null, '', `#${about.id}`);
  return about.id;
}

/** @param {Settings} settings */
const settled = (settings) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null && value !== undefined));

/**
 * Follows the answer of a chat until it is done.
 * @param {string} id
 * @param {Message} message
 * @param {number} position
 */
export async function follow(id, message, position) {
  const controller = followed?.message === message ? followed.controller : new AbortController();
  const { signal } = controller;
  followed = { controller, message, id };
  let after = position;
  while (!signal.aborted && message.status === 'running') {
    try {
      for await (const { event, position: at, data } of api.turn(id, after, signal)) {
        if (at) after = at;
        if (event) replace(message, data);
        else if (data.error) message.error = data.error;
        else take(message, data);
      }
      if (message.status !== 'running') break;
      const now = await api.chat(id);
      const kept = now.messages.find((other) => other.id === message.id);
      if (kept) replace(message, kept);
      else end(message, 'failed', t.cutOff);
      after = now.turn?.position ?? after;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof api.Refused && error.status === 404) return end(message, 'failed', error.message);
      // The server is started again, or the device was asleep.
      await new Promise((resolve) => { setTimeout(resolve, 1000); });
    }
  }
  if (signal.aborted) return;
  followed = null;
  said.value = t.answerComplete;
  await list();
  // The model names a chat after its first answer.
  setTimeout(list, 4000);
}

/**
 * Puts the question and the answer that begins where they belong, before the server knows.
 * @param {Start} begun
 */
function placed(begun) {
  const { messages } = chat.value;
  const id = () => `new-${Date.now()}-${made += 1}`;
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
 * @param {Message} answer
 */
async function local(answer) {
  const began = performance.now();
  const controller = new AbortController();
  followed = { controller, message: answer, id: null };
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
  if (followed?.message === answer) followed = null;
  touch(answer);
  keep();
}

/**
 * What the model gets to see: alternating roles, because many chat templates refuse two messages of one role in a row. A question that
 * only led to an error is left out, or a question that is too long would fail all that follow.
 * @param {Message[]} messages
 * @returns {{ role: string, content: any }[]}
 */
export function forModel(messages) {
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
