// How an answer grows: each chunk of a stream changes the parts of its message, which are plain data in the server's shape.

import { serverNow } from './clock.js';
import { t } from './language.js';
import { said, touch } from './store.js';

/** @import { CallPart, Message, Part, ResultPart } from './types.d.ts' */

/** Longest result kept and shown; copying gives what is kept, too. Twenty passages of documents are shorter. */
const RESULT = 64_000;
/** The same for the tool's word to the user, which is always in sight. */
const SAID = 4_000;

/** How often a call has changed: what shows it reads this. @type {WeakMap<CallPart, number>} */
const revisions = new WeakMap();

/** @param {CallPart} call */
const revise = (call) => revisions.set(call, (revisions.get(call) ?? 0) + 1);

/**
 * What is another number once a part has changed.
 * @param {Part} part
 */
export const revision = (part) => (part.type === 'call' ? (revisions.get(part) ?? 0) : part.text?.length ?? 0);

/**
 * Takes one chunk of the stream.
 * @param {Message} message
 * @param {any} chunk
 */
export function take(message, chunk) {
  const choice = chunk.choices?.[0];
  const content = choice?.delta?.content;
  if (choice?.delta?.reasoning_content) grow(message, 'reasoning', choice.delta.reasoning_content);
  // All that an answer without words of the model is known by, when it is sent back.
  if (content) message.shown = (message.shown ?? '') + content;
  // The message of a tool, or a part of its result, is shown at its call.
  if (content && chunk.x_toolrack?.type !== 'message') grow(message, 'text', content);
  if (chunk.x_toolrack) event(message, chunk.x_toolrack);
  if (choice?.finish_reason) message.finish_reason = choice.finish_reason;
  if (chunk.usage) message.usage = chunk.usage;
  touch(message);
}

/**
 * Ends an answer.
 * @param {Message} message
 * @param {Message['status']} status
 * @param {string} [error]
 */
export function end(message, status, error) {
  close(message);
  message.status = status;
  if (error) message.error = { message: error };
  for (const part of message.parts) {
    if (part.type !== 'call' || (part.state !== 'running' && part.state !== 'writing')) continue;
    Object.assign(part, { state: 'cancelled', progress: null });
    revise(part);
  }
  touch(message);
}

/**
 * The text of a message without thinking and calls.
 * @param {Message} message
 */
export function textOf(message) {
  return message.parts.filter((part) => part.type === 'text').map((part) => part.text.trim()).join('\n\n');
}

/**
 * A message as the server has it now. What only this tab knows of its calls stays.
 * @param {Message} message
 * @param {Message} now
 */
export function replace(message, now) {
  const calls = new Map(message.parts.filter((part) => part.type === 'call').map((part) => [part.id, part]));
  Object.assign(message, now);
  for (const part of message.parts) {
    if (part.type === 'call') part.since = calls.get(part.id)?.since ?? began(part);
  }
  touch(message);
}

/**
 * When a call began, by this machine's clock, as far as the server says it.
 * @param {CallPart} call
 */
export function began({ began_at: at }) {
  const ms = Date.parse(at ?? '');
  return Number.isFinite(ms) ? ms + Date.now() - serverNow() : Date.now();
}

/**
 * @param {Message} message
 * @param {'text' | 'reasoning'} type
 * @param {string} delta
 */
function grow(message, type, delta) {
  let last = message.parts.at(-1);
  if (last?.type !== type) {
    // Models put blank lines between their parts; those start nothing.
    const begin = delta.trimStart();
    if (begin === '') return;
    add(message, type === 'text' ? { type, text: begin } : { type, text: begin, began: performance.now() });
    return;
  }
  /** @type {{ text: string }} */ (last).text += delta;
}

/**
 * @param {Message} message
 * @param {Part} part
 */
function add(message, part) {
  close(message);
  message.parts.push(part);
}

/**
 * Nothing is added to the last part any more.
 * @param {Message} message
 */
function close(message) {
  const last = message.parts.at(-1);
  if (last?.type === 'reasoning' && last.ms === undefined) last.ms = performance.now() - (last.began ?? performance.now());
}

/**
 * @param {Message} message
 * @param {any} event
 */
function event(message, event) {
  const found = message.parts.findLast((part) => part.type === 'call' && part.id === event.id);
  const call = found?.type === 'call' ? found : undefined;
  if (call) revise(call);
  switch (event.type) {
    case 'call_begun':
      add(message, { ...started(event), state: 'writing', arguments: '' });
      break;
    case 'call_delta':
      if (call?.state === 'writing') call.arguments += event.arguments;
      break;
    case 'call_aborted':
      if (call) message.parts.splice(message.parts.indexOf(call), 1);
      break;
    case 'call_started':
      said.value = t.callRuns(event.name);
      // A call that is tried again starts a second time.
      if (call && (call.state === 'running' || call.state === 'writing')) Object.assign(call, started(event));
      else add(message, started(event));
      break;
    case 'call_status':
      if (call) Object.assign(call, status(call, event));
      break;
    case 'call_finished': {
      const name = event.name ?? call?.name ?? '';
      said.value = event.success ? t.callDone(name) : t.callFailed(name);
      // A call that was refused may finish without having started.
      if (call) {
        if (event.changed_arguments) Object.assign(call, { asked_for: call.arguments, arguments: event.changed_arguments });
        Object.assign(call, finished(event));
      } else add(message, { ...started(event), ...finished(event) });
      break;
    }
    case 'message':
      if (event.part && call) join(call.parts ??= [], event.part);
      break;
    case 'notice':
      if (event.message) add(message, { type: 'notice', text: event.message });
      break;
  }
}

/**
 * What is known of a call when it starts. Its arguments are never cut: nobody can approve what is not shown whole.
 * @param {any} event
 * @returns {CallPart}
 */
function started(event) {
  return {
    type: 'call', id: event.id, name: event.name ?? 'tool', arguments: event.arguments ?? null, dialect: event.dialect ?? null,
    state: 'running', since: Date.now(),
  };
}

/**
 * @param {CallPart} call
 * @param {any} event
 * @returns {Partial<CallPart>}
 */
function status(call, event) {
  if (event.question) said.value = t.callAsks(call.name, event.question.message);
  if (event.approval) said.value = t.callWaits(call.name);
  const seconds = event.approval_seconds ?? event.question?.seconds;
  return {
    message: event.message ?? call.message ?? null,
    progress: event.progress ?? null,
    approval: event.approval ?? null,
    reason: event.reason ?? null,
    question: event.question?.waits ? event.question : null,
    // By this machine's clock, which may be another than the server's.
    deadline: (event.approval || event.question) && seconds ? Date.now() + seconds * 1000 : null,
  };
}

/**
 * The change when a call has finished.
 * @param {any} event
 * @returns {Partial<CallPart>}
 */
function finished(event) {
  return {
    state: event.success ? 'ok' : event.cancelled ? 'cancelled' : 'failed',
    progress: null,
    approval: null,
    question: null,
    result: capped(event.result, RESULT),
    // A call that a person refused is no error, and says so in its message.
    said: event.success && event.message?.trim() ? /** @type {string} */ (capped(event.message.trim(), SAID)) : null,
    error: event.success ? null : (event.error ?? event.message ?? t.failedSilently),
    side_effects: event.side_effects ?? [],
    retry_at: event.retry_at ?? null,
    duration_ms: event.duration_ms ?? null,
  };
}

/**
 * Takes over a part of a result, which may only go on with the last one.
 * @param {ResultPart[]} parts
 * @param {ResultPart} part
 */
function join(parts, part) {
  const last = parts.at(-1);
  if (part.type === 'text' && last?.type === 'text') last.text = (last.text ?? '') + (part.text ?? '');
  else parts.push({ ...part });
}

/**
 * @param {unknown} value
 * @param {number} most
 */
function capped(value, most) {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return text.length <= most ? value : `${text.slice(0, most)}\n${t.moreCharacters(text.length - most)}`;
}
