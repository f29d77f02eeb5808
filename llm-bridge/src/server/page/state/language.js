// The texts of the page in the person's language: a file of `languages/` each.

import english from '../languages/en.js';
import { preference } from './storage.js';

/** Those that are written from the right. */
const FROM_THE_RIGHT = /^(?:ar|ckb|dv|fa|he|ps|sd|ug|ur|yi)$/;

/** The languages that there are. */
export const LANGUAGES = (document.documentElement.dataset.languages ?? 'en').split(' ');

const wanted = [preference('language', ''), ...navigator.languages].map((name) => name.split('-')[0] ?? '');

const chosen = wanted.find((name) => LANGUAGES.includes(name)) ?? 'en';

/** @type {[string, typeof english]} */
const loaded = chosen === 'en' ? ['en', english] : await import(`../languages/${chosen}.js`).then(({ default: texts }) => [chosen, texts], () => ['en', english]);

/** The language of the page, and what it says in it: English where that cannot be loaded. */
export const [language, t] = loaded;

/** The same with the person's region, where the browser says one: dates and numbers differ by it. */
export const locale = navigator.languages.find((name) => name.split('-')[0] === language) ?? language;

/**
 * What the server says: in the person's language where the type of the error has a sentence there, with the server's words behind one that
 * ends with a colon.
 * @param {{ type?: unknown, message: string }} error the type may be one of the model server's
 */
export function told({ type, message }) {
  const sentence = typeof type === 'string' && Object.hasOwn(t.faults, type) ? (t.faults[type] ?? '') : '';
  return sentence === '' || sentence.endsWith(':') ? `${sentence} ${message}`.trim() : sentence;
}

document.documentElement.lang = language;
document.documentElement.dir = FROM_THE_RIGHT.test(language) ? 'rtl' : 'ltr';
