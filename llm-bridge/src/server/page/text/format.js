// Numbers for people, in their language.

import { locale } from '../state/language.js';

const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** @param {number} value */
export const number = (value) => whole.format(value);

/**
 * A duration: `12 ms`, `3.4 s`, `2 min 5 s`.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 1) return '< 1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${tenths.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [value, unit] = bytes < 1_000_000 ? [bytes / 1000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${value < 10 ? tenths.format(value) : whole.format(value)} ${unit}`;
}

/**
 * `today 14:03` as a person would say it: the time of today, else the day.
 * @param {string} time
 */
export function moment(time) {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, today ? { timeStyle: 'short' } : { dateStyle: 'medium' }).format(date);
}

/**
 * Text on one line, cut where it is too long.
 * @param {string} text
 * @param {number} most in characters
 */
export function oneLine(text, most = 160) {
  const line = text.slice(0, most * 4).replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}
