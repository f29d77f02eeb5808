// Numbered notes in an answer: where it names a document that was found, or cites it by a number, a button opens the passage.

import { nameOf } from '../state/sources.js';

/** @import { Source } from '../state/types.d.ts' */

/** How far behind a document's name its place is looked for, in characters. */
const NEAR = 160;
/** Shorter names of files are words like others. */
const SHORTEST = 5;

/**
 * By what texts mean sources: the numbers that calls cite them by, a number for two of them meaning neither, and their names.
 * @typedef {{ cited: Map<number, Source | null>, named: Map<string, Source[]>, pattern: RegExp | null }} Index
 * @type {WeakMap<readonly Source[], Index>}
 */
const indexes = new WeakMap();

/**
 * @param {readonly Source[]} sources
 * @returns {Index}
 */
function indexOf(sources) {
  const known = indexes.get(sources);
  if (known) return known;
  const [cited, named] = [new Map(), new Map()];
  for (const source of sources) {
    for (const number of source.cited) cited.set(number, cited.has(number) && cited.get(number) !== source ? null : source);
    for (const name of new Set([source.path, nameOf(source)])) {
      const of = named.get(name);
      if (of) of.push(source);
      else if (name.length >= SHORTEST) named.set(name, [source]);
    }
  }
  // A path before the name of its file, which is in it.
  const names = [...named.keys()].sort((a, b) => b.length - a.length);
  const pattern = names.length === 0 ? null
    : new RegExp([...names.map((name) => `(?<![\\w/.-])${escaped(name)}(?![\\w-])`), String.raw`\[\d+(?:, ?\d+)*\]`].join('|'), 'g');
  const index = { cited, named, pattern };
  indexes.set(sources, index);
  return index;
}

/**
 * Puts notes into what Markdown has become.
 * @param {ParentNode & Node} content
 * @param {readonly Source[]} sources
 * @param {(source: Source) => HTMLElement} note
 */
export function putNotes(content, sources, note) {
  const { cited, named, pattern } = indexOf(sources);
  if (!pattern) return;
  const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const texts = [];
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
  for (const text of texts) {
    if (text.parentElement?.closest('pre, a, .katex')) continue;
    for (const match of [...text.data.matchAll(pattern)].reverse()) {
      const [word] = match;
      const end = match.index + word.length;
      if (word.startsWith('[')) {
        // `list[1]` in code is no note.
        if (text.parentElement?.closest('code')) continue;
        const numbers = word.slice(1, -1).split(',').map(Number);
        const found = numbers.map((number) => cited.get(number));
        if (found.some((source) => !source)) continue;
        const rest = text.splitText(match.index);
        rest.data = rest.data.slice(word.length);
        rest.before(...found.map((source) => note(/** @type {Source} */ (source))));
      } else {
        const source = meant(named.get(word) ?? [], text.data.slice(end, end + NEAR) + following(text));
        const code = text.parentElement?.closest('code');
        if (code) code.after(note(source));
        else text.splitText(end).before(note(source));
      }
    }
  }
}

/**
 * Of the passages of a document the one whose place is named behind it, or else the best one.
 * @param {Source[]} passages
 * @param {string} behind
 * @returns {Source}
 */
function meant(passages, behind) {
  const text = behind.toLowerCase();
  const placed = passages.map((source) => ({ source, at: placeIn(text, source.place.toLowerCase()) })).filter(({ at }) => at >= 0);
  placed.sort((a, b) => a.at - b.at);
  return /** @type {Source} */ (placed[0]?.source ?? passages[0]);
}

/**
 * Where a place is named: `line 5` is not in `line 50`, nor in `line 5-9`.
 * @param {string} text
 * @param {string} place
 */
function placeIn(text, place) {
  let at = text.indexOf(place);
  while (at >= 0 && /^-?\d/.test(text.slice(at + place.length, at + place.length + 2))) at = text.indexOf(place, at + 1);
  return at;
}

/**
 * What stands behind a text in the same line, as where the name is code or strong.
 * @param {Text} text
 */
function following(text) {
  const parent = text.parentElement;
  if (!parent?.matches('code, strong, em')) return '';
  return (parent.nextSibling?.textContent ?? '').slice(0, NEAR);
}

/** @param {string} text */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
