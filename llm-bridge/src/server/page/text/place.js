// Where a passage stands in its document, in the person's language.

import { t } from '../state/language.js';

/**
 * The server says `line 3`, `lines 3-9`, `page 2`.
 * @param {string} place
 */
export function placed(place) {
  const [, unit, which = ''] = /^(line|page)s? (\d+(?:-\d+)?)$/.exec(place) ?? [];
  if (unit !== 'line' && unit !== 'page') return place;
  return t.places[unit](which.replace('-', '–'), which.includes('-'));
}
