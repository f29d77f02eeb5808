// The conversation, kept for as long as the tab lives.

import { textOf } from './answer.js';
import { recall, remember } from './storage.js';

const KEY = 'conversation';

/** The stored messages. */
export function load() {
  const messages = recall(KEY, []);
  return Array.isArray(messages) && messages.every(isMessage) ? messages : [];
}

/** Stores the messages, the newest ones if all are too large. */
export function save(messages) {
  for (let from = 0; from <= messages.length; from += 2) {
    if (remember(KEY, messages.slice(from))) return;
  }
}

/**
 * What the server gets to see. An answer without text is left out and the
 * questions around it become one: many chat templates refuse two messages of
 * one role in a row.
 */
export function forServer(messages) {
  const sent = [];
  for (const message of messages) {
    const content = message.role === 'user' ? message.content : textOf(message);
    const last = sent.at(-1);
    if (!content) continue;
    if (last?.role === message.role) last.content += `\n\n${content}`;
    else sent.push({ role: message.role, content });
  }
  return sent;
}

function isMessage(message) {
  return message.role === 'user' ? typeof message.content === 'string' : Array.isArray(message.parts);
}
