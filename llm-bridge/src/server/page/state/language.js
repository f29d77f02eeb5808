// The texts of the page in the person's language: a file of `languages/` each.

import english from '../languages/en.js';
import { preference } from './storage.js';

/** The languages that there are. */
export const LANGUAGES = (document.documentElement.dataset.languages ?? 'en').split(' ');

const wanted = [preference('language', ''), ...navigator.languages].map((name) => name.split('-')[0] ?? '');

/** The language of the page. */
export const language = wanted.find((name) => LANGUAGES.includes(name)) ?? 'en';

/**
 * What the page says.
 * @type {typeof english}
 */
export const t = language === 'en' ? english : (await import(`../languages/${language}.js`)).default;

document.documentElement.lang = language;
