// Times for people, in their language and their time zone.

import { language } from '../../state/language.js';

const format = new Intl.DateTimeFormat(language, { dateStyle: 'short', timeStyle: 'medium' });

/** @param {string | null | undefined} time */
export const exact = (time) => (time ? format.format(new Date(time)) : '–');
