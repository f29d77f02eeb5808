// Where in the console one is, and its texts: those of the chat page are not enough, and it loads nothing for them. What is known of the
// server stands in the one store.

import { signal } from '../vendor/signals.js';
import * as api from '../state/api.js';
import { language } from '../state/language.js';
import { account, health } from '../state/store.js';
import english from './languages/en.js';

/**
 * What the console says: English in a language that only the chat page has.
 * @type {typeof english}
 */
export const c = language === 'en' ? english : await import(`./languages/${language}.js`).then((texts) => texts.default, () => english);

/** The sections, in their order. */
export const SECTIONS = /** @type {const} */ (['overview', 'models', 'tools', 'people', 'personas', 'turns', 'approvals', 'audit', 'traces', 'servers', 'documents', 'schedule', 'webhooks', 'settings']);

/** @typedef {typeof SECTIONS[number]} Section */

/** The levels that a user may have, the lowest first. */
export const LEVELS = ['guest', 'user', 'admin', 'owner'];

export { account };

/** Why it is not known who uses the console. */
export const refusal = signal('');

/** What the address names: a section, and what to look for in it. */
export const place = signal(placeOf(location.hash));

addEventListener('hashchange', () => { place.value = placeOf(location.hash); });

/** Whether a row has room for all that is known. */
const room = matchMedia('(min-width: 120rem)');
export const wide = signal(room.matches);
room.addEventListener('change', () => { wide.value = room.matches; });

/** @param {string} hash */
function placeOf(hash) {
  const [name = '', query = ''] = hash.slice(1).split('?');
  return { section: SECTIONS.find((section) => section === name) ?? SECTIONS[0], query: new URLSearchParams(query) };
}

/**
 * The address of a section.
 * @param {Section} section
 * @param {Record<string, string>} [query]
 */
export const to = (section, query) => (query ? `#${section}?${new URLSearchParams(query)}` : `#${section}`);

/** Asks who uses the console. */
export async function enter() {
  try {
    health.value = await api.health();
    account.value = await api.account();
    refusal.value = '';
  } catch (error) {
    refusal.value = /** @type {Error} */ (error).message;
  }
}
