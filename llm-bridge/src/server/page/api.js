// Everything the page asks the server for. Addresses are relative, so that the
// page also works behind a proxy that serves it below some path.

import { askKey, givenKey } from './key.js';
import { events } from './sse.js';

const UNREACHABLE = 'The server cannot be reached. Is it still running?';
const CUT_OFF = 'The connection ended before the answer was complete.';

/** The names of the models on offer. */
export async function models() {
  const { data } = await getJson('v1/models');
  return data.map((model) => model.id);
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

async function checked(address, options) {
  let response;
  try {
    response = await withKey(address, options);
  } catch (error) {
    throw error instanceof TypeError ? new Error(UNREACHABLE, { cause: error }) : error;
  }
  if (!response.ok) throw new Error(await failure(response));
  return response;
}

// Asks for a key where the server wants one, and as long as it wants another.
async function withKey(address, options) {
  for (;;) {
    const key = givenKey();
    const headers = key ? { ...options.headers, authorization: `Bearer ${key}` } : options.headers;
    const response = await fetch(address, { ...options, headers });
    if (response.status !== 401 || !(await askKey(key))) return response;
  }
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
