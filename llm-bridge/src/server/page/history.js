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
 * What the server gets to see: alternating roles, because many chat templates
 * refuse two messages of one role in a row. A question that only led to an
 * error is left out, or a question that is too long would fail all that follow.
 */
export function forServer(messages) {
  const sent = [];
  for (const message of messages) {
    if (message.role === 'assistant') {
      const content = textOf(message);
      if (content) sent.push({ role: 'assistant', content });
      else if (message.parts.some((part) => part.kind === 'error')) sent.pop();
    } else if (sent.at(-1)?.role === 'user') {
      sent.at(-1).content += `\n\n${message.content}`;
    } else {
      sent.push({ role: 'user', content: message.content });
    }
  }
  return sent;
}

function isMessage(message) {
  return message.role === 'user' ? typeof message.content === 'string' : Array.isArray(message.parts);
}
