// Numbered notes in an answer: where it names a document that was found, or cites it by a number, a button opens the passage.

import { nameOf } from '../state/sources.js';

/** @import { Source } from '../state/types.d.ts' */

/** How far behind a document's name its place is looked for, in characters. */
const NEAR = 160;
/** Shorter names of files are words like others. */
const SHORTEST = 5;

/**
 * Puts notes into what Markdown has become.
 * @param {ParentNode & Node} content
 * @param {Source[]} sources
 * @param {(source: Source) => HTMLElement} note
 */
export function putNotes(content, sources, note) {
  // A number that two analyses use for two passages stands for neither.
  const meanings = sources.flatMap((source) => source.cited.map((number) => ({ number, source })));
  const cited = new Map(meanings.filter(({ number, source }) => meanings.every((other) => other.number !== number || other.source === source)).map(({ number, source }) => [number, source]));
  const names = [...new Set(sources.flatMap((source) => [source.path, nameOf(source)]))].filter((name) => name.length >= SHORTEST);
  // A path before the name of its file, which is in it.
  names.sort((a, b) => b.length - a.length);
  if (names.length === 0) return;
  const pattern = new RegExp([...names.map((name) => `(?<![\\w/.-])${escaped(name)}(?![\\w-])`), String.raw`\[\d+(?:, ?\d+)*\]`].join('|'), 'g');
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
        const source = meant(word, text.data.slice(end, end + NEAR) + following(text), sources);
        const code = text.parentElement?.closest('code');
        if (code) code.after(note(source));
        else text.splitText(end).before(note(source));
      }
    }
  }
}

/**
 * The passage of the document whose place is named behind it, or else the best one.
 * @param {string} name
 * @param {string} behind
 * @param {Source[]} sources
 * @returns {Source}
 */
function meant(name, behind, sources) {
  const of = sources.filter((source) => source.path === name || nameOf(source) === name);
  const placed = of.map((source) => ({ source, at: behind.search(new RegExp(`${escaped(source.place)}(?!\\d|-\\d)`, 'i')) })).filter(({ at }) => at >= 0);
  placed.sort((a, b) => a.at - b.at);
  return /** @type {Source} */ (placed[0]?.source ?? of[0]);
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
