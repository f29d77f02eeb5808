// A chat is a tree of messages: an edited message, and another answer, stand beside the one before.

/** @import { Message } from './types.d.ts' */

/**
 * The messages from the root to `leaf`.
 * @param {Message[]} messages
 * @param {string | null} leaf
 */
export function branch(messages, leaf) {
  const known = new Map(messages.map((message) => [message.id, message]));
  /** @type {Message[]} */
  const found = [];
  for (let at = leaf === null ? undefined : known.get(leaf); at && found.length < messages.length;) {
    found.push(at);
    at = at.parent === null ? undefined : known.get(at.parent);
  }
  return found.reverse();
}

/**
 * The messages of each list that stand beside each other: every message asks for its own.
 * @type {WeakMap<Message[], Map<string, Message[]>>}
 */
const beside = new WeakMap();

/**
 * A message with those that stand beside it, oldest first.
 * @param {Message[]} messages
 * @param {Message} message
 */
export function siblings(messages, message) {
  const key = (/** @type {Message} */ { parent, role }) => `${role} ${parent}`;
  let all = beside.get(messages);
  if (!all) beside.set(messages, all = Map.groupBy(messages, key));
  return all.get(key(message)) ?? [];
}

/**
 * The newest message below one.
 * @param {Message[]} messages
 * @param {string} from
 */
export function newest(messages, from) {
  let at = from;
  // Messages stand oldest first, so one passage finds the last child of each.
  for (const message of messages) if (message.parent === at) at = lastChild(messages, at);
  return at;
}

/**
 * @param {Message[]} messages
 * @param {string} parent
 */
function lastChild(messages, parent) {
  return messages.findLast((message) => message.parent === parent)?.id ?? parent;
}
