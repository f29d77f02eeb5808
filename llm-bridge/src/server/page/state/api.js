// Everything the page asks the server for. Addresses are relative, so that the page also works behind a proxy that serves it below
// some path.

import { setClock } from './clock.js';
import { askKey, givenKey } from './key.js';
import { t, told } from './language.js';
import { events } from './sse.js';

/** @import { Account, ApprovalRule, Chat, Health, Library, Listed, Message, RuleScope, Session, Settings, Tool } from './types.d.ts' */

/** An answer of the server that is an error. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} type
   */
  constructor(message, status, type) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

/**
 * The models on offer, without those for requests without tools; `pictures` is whether they see some, where that is known.
 * @returns {Promise<{ id: string, pictures?: boolean }[]>}
 */
export async function listedModels() {
  const { data } = await getJson('v1/models');
  return data.filter((/** @type {{ id: string }} */ { id }) => !id.endsWith(':plain'));
}

/** Their names. */
export const models = async () => (await listedModels()).map(({ id }) => id);

/**
 * All tools, also those that are off.
 * @returns {Promise<Tool[]>}
 */
export const tools = async () => (await getJson('api/tools')).tools;

/** @returns {Promise<Health>} */
export const health = () => getJson('healthz');

/**
 * Who this page acts as.
 * @returns {Promise<Account>}
 */
export const account = () => getJson('api/account');

/** @returns {Promise<Session>} */
export const session = () => getJson('api/session');

/**
 * Ends the session of this browser. Gives where the provider ends its own, or `null`.
 * @returns {Promise<string | null>}
 */
export const signOut = async () => (await (await checked('sign-out', { method: 'POST' })).json()).location;

/** @returns {Promise<{ name: string, description?: string }[]>} */
export const personas = async () => (await getAll('api/personas', 'personas')) ?? [];

/**
 * The bytes of a file that a tool has given, or that stands in a message.
 * @param {string} path
 */
export const file = async (path) => (await checked(path, {})).blob();

/** @returns {Promise<Library>} */
export const documents = () => getJson('api/documents');

/**
 * Sends a file to where documents are kept; `progress` gets how much of it is sent, from 0 to 1.
 * @param {string} address
 * @param {string} name
 * @param {File} content
 * @param {(part: number) => void} progress
 * @param {AbortSignal} signal
 * @returns {Promise<{ outcome: string, passages: number }>}
 */
async function sendDocument(address, name, content, progress = () => {}, signal = new AbortController().signal) {
  const about = new URLSearchParams({ name, modified: new Date(content.lastModified).toISOString() });
  const headers = { 'content-type': 'application/octet-stream' };
  /** @type {(address: string, options: any) => Promise<Response>} */
  const sending = (to, options) => sent(to, options, progress);
  return (await checked(`${address}?${about}`, { method: 'POST', headers, body: content, signal }, sending)).json();
}

/**
 * Adds a document that all users' tools find.
 * @param {string} name
 * @param {File} content
 * @param {(part: number) => void} progress
 * @param {AbortSignal} signal
 */
export const addDocument = (name, content, progress, signal) => sendDocument('api/documents', name, content, progress, signal);

/**
 * Removes a document, or all in a folder.
 * @param {string} path
 */
export async function removeDocuments(path) {
  await checked(`api/documents?${new URLSearchParams({ path })}`, { method: 'DELETE' });
}

/** @param {string} chat */
const chatDocumentsAddress = (chat) => `${chatAddress(chat)}/documents`;

/**
 * The documents that the tools of one chat find.
 * @param {string} chat
 * @returns {Promise<{ name: string, passages: number }[]>}
 */
export const chatDocuments = async (chat) => (await getJson(chatDocumentsAddress(chat))).documents;

/**
 * Adds a document to a chat.
 * @param {string} chat
 * @param {string} name
 * @param {File} content
 */
export const addChatDocument = (chat, name, content) => sendDocument(chatDocumentsAddress(chat), name, content);

/**
 * @param {string} chat
 * @param {string} name
 */
export const removeChatDocument = (chat, name) => checked(`${chatDocumentsAddress(chat)}?${new URLSearchParams({ name })}`, { method: 'DELETE' });

/** What waits for approval. */
export const approvals = () => getAll('api/approvals', 'approvals');
/** What tools have asked. */
export const questions = () => getAll('api/questions', 'questions');

/**
 * Says whether a call that waits for a person may be made.
 * @param {string} id
 * @param {boolean} approve
 * @param {string} [reason]
 * @param {Record<string, unknown>} [args] what the call is made with instead of its arguments
 * @param {RuleScope['scope']} [remember] what else is allowed from now on
 */
export async function answerApproval(id, approve, reason, args, remember) {
  await send(`api/approvals/${encodeURIComponent(id)}`, { approve, ...(reason ? { reason } : {}), ...(args ? { arguments: args } : {}), ...(remember ? { remember } : {}) });
}

/**
 * What this person has allowed beforehand.
 * @returns {Promise<ApprovalRule[]>}
 */
export const approvalRules = async () => (await getJson('api/approval-rules')).rules;

/** @param {string} id */
export const revokeRule = (id) => checked(`api/approval-rules/${encodeURIComponent(id)}`, { method: 'DELETE' });

/** A question of a tool is shown until it expires. */
const QUESTION_WAIT = 86_400;

/**
 * Answers a question of a tool with an object; `null` declines.
 * @param {string} id
 * @param {Record<string, unknown> | null} answer
 */
export async function answerQuestion(id, answer) {
  await send(`api/questions/${encodeURIComponent(id)}`, answer === null ? { decline: true } : { answer });
}

/**
 * Streams one answer as chunks of the chat completions API.
 * @param {Record<string, unknown>} request
 * @param {AbortSignal} signal
 */
export async function* complete(request, signal) {
  const toolrack = { .../** @type {object} */ (request.toolrack), question_wait_seconds: QUESTION_WAIT };
  const response = await send('v1/chat/completions', { ...request, stream: true, stream_options: { include_usage: true }, toolrack }, signal);
  let finished = false;
  try {
    for await (const { data } of events(body(response))) {
      if (data === '[DONE]') return;
      const chunk = parse(data);
      if (chunk.error) throw new Error(chunk.error.message ? told(chunk.error) : t.errorWithoutMessage);
      finished ||= Boolean(chunk.choices?.[0]?.finish_reason);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error(t.cutOff, { cause: error }) : error;
  }
  if (!finished) throw new Error(t.cutOff);
}

/**
 * @param {{ search?: string, after?: string }} query
 * @returns {Promise<{ chats: Listed[], next: string | null }>}
 */
export function chats(query) {
  return getJson(`api/chats?${new URLSearchParams({ limit: '50', ...query })}`);
}

/**
 * @param {{ title?: string, settings?: Settings }} about
 * @returns {Promise<Listed & { settings: Settings }>}
 */
export const newChat = async (about) => (await send('api/chats', about)).json();

/**
 * @param {string} id
 * @returns {Promise<Chat & { id: string, turn: { message: string, position: number } | null }>}
 */
export const chat = (id) => getJson(chatAddress(id));

/**
 * @param {string} id
 * @param {{ title?: string, pinned?: boolean, leaf?: string, settings?: Settings }} change
 * @returns {Promise<Chat>}
 */
export async function changeChat(id, change) {
  const body = JSON.stringify(change);
  // Also when the page is closed meanwhile; browsers do so for 64 KiB.
  const keepalive = body.length < 16_000;
  return (await checked(chatAddress(id), { method: 'POST', headers: { 'content-type': 'application/json' }, body, keepalive })).json();
}

/** @param {string} id */
export const deleteChat = (id) => checked(chatAddress(id), { method: 'DELETE' });

/**
 * @param {string} id
 * @param {'markdown' | 'json'} format
 */
export const exportChat = async (id, format) => (await checked(`${chatAddress(id)}/export?format=${format}`, {})).blob();

/**
 * @param {string} id
 * @param {string} message
 * @returns {Promise<Chat>}
 */
export const deleteMessage = async (id, message) =>
  (await checked(`${chatAddress(id)}/messages/${encodeURIComponent(message)}`, { method: 'DELETE' })).json();

/**
 * @param {string} id
 * @param {Record<string, unknown>} turn
 * @returns {Promise<{ turn: { message: string, position: number }, message: Message | null, answer: Message }>}
 */
export const startTurn = async (id, turn) => (await send(`${chatAddress(id)}/turn`, turn)).json();

/** @param {string} id */
export const stopTurn = async (id) => (await send(`${chatAddress(id)}/stop`, {})).json();

/**
 * The events of a running turn from a position on; none when there is none.
 * @param {string} id
 * @param {number} after
 * @param {AbortSignal} signal
 */
export async function* turn(id, after, signal) {
  const response = await checked(`${chatAddress(id)}/turn?after=${after}`, { headers: { accept: 'text/event-stream' }, signal });
  if (response.status === 204) return;
  for await (const { data, event, id: position } of events(body(response))) {
    yield { event, position: Number(position), data: parse(data) };
  }
}

/** @param {string} id */
const chatAddress = (id) => `api/chats/${encodeURIComponent(id)}`;

/** The state of the build, and each later one, until the stream ends. */
export async function* buildStates() {
  const response = await checked('api/dev/events', { headers: { accept: 'text/event-stream' } });
  for await (const { data } of events(body(response))) yield parse(data);
}

/** @param {Response} response */
function body(response) {
  if (!response.body) throw new Error(t.cutOff);
  return response.body;
}

/**
 * Reads JSON.
 * @param {string} address
 */
export async function getJson(address) {
  return parse(await (await checked(address, { headers: { accept: 'application/json' } })).text());
}

/**
 * Reads a list to its end.
 * @param {string} address
 * @param {string} name of the list in the answers
 * @param {string | null} after
 * @returns {Promise<any[]>}
 */
export async function getAll(address, name, after = null) {
  const { [name]: list, next } = await getJson(after === null ? address : `${address}?${new URLSearchParams({ after })}`);
  return next ? list.concat(await getAll(address, name, next)) : list;
}

/**
 * Sends JSON.
 * @param {string} address
 * @param {unknown} content
 * @param {AbortSignal} [signal]
 */
export function send(address, content, signal) {
  return checked(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content),
    ...(signal ? { signal } : {}),
  });
}

/**
 * The answer to a request, with the key where one is needed.
 * @param {string} address
 * @param {RequestInit} options
 * @param {(address: string, options: RequestInit) => Promise<Response>} sending
 */
export async function checked(address, options, sending = fetch) {
  let response;
  try {
    response = await withKey(address, options, sending);
  } catch (error) {
    throw error instanceof TypeError ? new Error(t.unreachable, { cause: error }) : error;
  }
  setClock(response);
  if (!response.ok) throw await failure(response);
  return response;
}

/**
 * Asks for a key where the server wants one, and as long as it wants another.
 * @param {string} address
 * @param {RequestInit} options
 * @param {(address: string, options: RequestInit) => Promise<Response>} sending
 */
async function withKey(address, options, sending) {
  for (;;) {
    const key = givenKey();
    const headers = key ? { ...options.headers, authorization: `Bearer ${key}` } : options.headers;
    const response = await sending(address, { ...options, ...(headers ? { headers } : {}) });
    if (response.status !== 401 || !(await askKey(key))) return response;
  }
}

/**
 * As `fetch`, which does not say how much is sent.
 * @param {string} address
 * @param {{ method: string, headers: Record<string, string>, body: File, signal: AbortSignal }} options
 * @param {(part: number) => void} progress
 * @returns {Promise<Response>}
 */
function sent(address, { method, headers, body: content, signal }, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, address);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener('progress', ({ loaded, total }) => progress(loaded / total));
    request.addEventListener('load', () => resolve(new Response(request.responseText, { status: request.status, statusText: request.statusText })));
    request.addEventListener('error', () => reject(new TypeError('not sent')));
    request.addEventListener('abort', () => reject(signal.reason));
    signal.addEventListener('abort', () => request.abort());
    request.send(content);
  });
}

/** @param {Response} response */
async function failure(response) {
  const status = t.serverAnswered(`${response.status} ${response.statusText}`.trim());
  try {
    const { error } = await response.json();
    // The reply of a tool that failed has a text.
    if (typeof error === 'string') return new Refused(error, response.status, '');
    return new Refused(error.message ? told(error) : status, response.status, error.type ?? '');
  } catch {
    return new Refused(status, response.status, '');
  }
}

/** @param {string} data */
function parse(data) {
  try {
    return JSON.parse(data);
  } catch (error) {
    throw new Error(t.notJson, { cause: error });
  }
}
