// Everything the page asks the server for. Addresses are relative, so that the
// page also works behind a proxy that serves it below some path.

import { askKey, givenKey } from './key.js';
import { events } from './sse.js';

const UNREACHABLE = 'The server cannot be reached. Is it still running?';
const CUT_OFF = 'The connection ended before the answer was complete.';

/** The names of the models on offer, without those for requests without tools. */
export async function models() {
  const { data } = await getJson('v1/models');
  return data.map((model) => model.id).filter((name) => !name.endsWith(':plain'));
}

/** All tools, also those that are off. */
export async function tools() {
  return (await getJson('api/tools')).tools;
}

/** `{status, upstream, model, tools}`. */
export function health() {
  return getJson('healthz');
}

/** Sanitised HTML for `markdown`. */
export async function rendered(markdown) {
  const response = await send('api/render', { markdown });
  return (await response.json()).html;
}

/** `{documents, total, may_add, extensions, max_bytes}`. */
export function documents() {
  return getJson('api/documents');
}

/** Adds a file; `progress` gets how much of it is sent, from 0 to 1. Gives `{path, outcome, passages}`. */
export async function addDocument(name, file, progress, signal) {
  const about = new URLSearchParams({ name, modified: new Date(file.lastModified).toISOString() });
  const headers = { 'content-type': 'application/octet-stream' };
  const sending = (address, options) => sent(address, options, progress);
  return (await checked(`api/documents?${about}`, { method: 'POST', headers, body: file, signal }, sending)).json();
}

/** Removes a document, or all in a folder. */
export async function removeDocuments(path) {
  await checked(`api/documents?${new URLSearchParams({ path })}`, { method: 'DELETE' });
}

/** Says whether a call that waits for a person may be made. */
export async function answerApproval(id, approve) {
  await send(`api/approvals/${encodeURIComponent(id)}`, { approve });
}

/** Streams one answer as chunks of the chat completions API. */
export async function* complete(model, messages, signal) {
  const request = { model, messages, stream: true, stream_options: { include_usage: true } };
  const response = await send('v1/chat/completions', request, signal);
  let finished = false;
  try {
    for await (const data of events(response.body)) {
      if (data === '[DONE]') return;
      const chunk = parse(data);
      if (chunk.error) throw new Error(chunk.error.message ?? 'The server reported an error without a message.');
      finished ||= Boolean(chunk.choices?.[0]?.finish_reason);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error(CUT_OFF, { cause: error }) : error;
  }
  if (!finished) throw new Error(CUT_OFF);
}

async function getJson(address) {
  return (await checked(address, { headers: { accept: 'application/json' } })).json();
}

function send(address, body, signal) {
  return checked(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
}

async function checked(address, options, sending = fetch) {
  let response;
  try {
    response = await withKey(address, options, sending);
  } catch (error) {
    throw error instanceof TypeError ? new Error(UNREACHABLE, { cause: error }) : error;
  }
  if (!response.ok) throw new Error(await failure(response));
  return response;
}

// Asks for a key where the server wants one, and as long as it wants another.
async function withKey(address, options, sending) {
  for (;;) {
    const key = givenKey();
    const headers = key ? { ...options.headers, authorization: `Bearer ${key}` } : options.headers;
    const response = await sending(address, { ...options, headers });
    if (response.status !== 401 || !(await askKey(key))) return response;
  }
}

// As `fetch`, which does not say how much is sent.
function sent(address, { method, headers, body, signal }, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, address);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener('progress', ({ loaded, total }) => progress(loaded / total));
    request.addEventListener('load', () => resolve(new Response(request.responseText, { status: request.status, statusText: request.statusText })));
    request.addEventListener('error', () => reject(new TypeError('not sent')));
    request.addEventListener('abort', () => reject(signal.reason));
    signal.addEventListener('abort', () => request.abort());
    request.send(body);
  });
}

async function failure(response) {
  const status = `The server answered ${response.status} ${response.statusText}`.trim();
  try {
    return (await response.json()).error.message || status;
  } catch {
    return status;
  }
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch (error) {
    throw new Error('The server sent something that is not JSON.', { cause: error });
  }
}
