// Times for people, in their language and their time zone.

import { locale } from '../../state/language.js';

const format = new Intl.DateTimeFormat(locale, { dateStyle: 'short', timeStyle: 'medium' });

/** @param {string | null | undefined} time */
export const exact = (time) => (time ? format.format(new Date(time)) : '–');
