// Markdown as HTML. No HTML passes through it, and no address but those of the web: what comes out is safe to show.

import { mathematics } from './mathematics.js';

/** @import { MarkdownIt, Token } from '../vendor/markdown-it.js' */

/** @type {{ growing: MarkdownIt, whole: MarkdownIt } | null} */
let parsers = null;
/** @type {Promise<void> | null} */
let loading = null;

/** Whether the library is here, or else comes: it is not needed for the first paint. */
export const loaded = () => parsers !== null;

/** Loads the library. */
export function load() {
  loading ??= Promise.all([import('../vendor/markdown-it.js'), import('../vendor/markdown-it-footnote.js')]).then(() => {
    const { markdownit, markdownitFootnote } = /** @type {any} */ (globalThis);
    const make = () => {
      /** @type {MarkdownIt} */
      const parser = markdownit({ html: false, linkify: true });
      // What names a file, such as `README.md`, is no address.
      parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
      return parser.use(mathematics).use(tasks).use(alignment);
    };
    parsers = { growing: make(), whole: make().use(markdownitFootnote) };
  });
  return loading;
}

/** So many footnotes are made, and their names are so long: the library looks through all of them, and all of a name, for each. */
const hasManyNotes = (/** @type {string} */ text) => /\[\^[^\s\]]{200}/.test(text) || text.split('[^').length > 1000;

/**
 * A text that is complete.
 * @param {string} text
 * @param {string} id makes the names of footnotes unique on the page
 */
export function rendered(text, id) {
  return (hasManyNotes(text) ? parsers?.growing : parsers?.whole)?.render(text, { docId: id }) ?? '';
}

/** Whether a text has something that a later line defines, so that it cannot be shown block by block. */
export const refersAhead = (/** @type {string} */ text) => /^ {0,3}\[[^\]]+\]:/m.test(text);

/**
 * The blocks of a text that grows: those that are complete, the one that may go on, and where that begins.
 * @param {string} text
 * @returns {{ complete: string, open: string, from: number }}
 */
export function blocks(text) {
  if (!parsers) return { complete: '', open: '', from: 0 };
  const { growing } = parsers;
  const env = {};
  const tokens = growing.parse(text, env);
  const last = tokens.findLastIndex((token) => token.level === 0 && token.nesting >= 0 && token.map !== null);
  const line = tokens[last]?.map?.[0] ?? 0;
  const render = (/** @type {Token[]} */ some) => growing.renderer.render(some, growing.options, env);
  return { complete: render(tokens.slice(0, Math.max(last, 0))), open: render(tokens.slice(Math.max(last, 0))), from: lineStart(text, line) };
}

/**
 * @param {string} text
 * @param {number} line
 */
function lineStart(text, line) {
  let at = 0;
  for (let left = line; left > 0; left -= 1) at = text.indexOf('\n', at) + 1;
  return at;
}

/**
 * How the cells of a table stand: by a class, because the page allows no style in HTML.
 * @param {MarkdownIt} parser
 */
function alignment(parser) {
  parser.core.ruler.after('inline', 'alignment', (state) => {
    for (const token of state.tokens) {
      const side = token.attrs?.find(([name]) => name === 'style')?.[1]?.split(':')[1];
      if (side) token.attrs = [['class', side]];
    }
  });
}

/**
 * Lists of tasks: `[x]` and `[ ]` at the beginning of an item.
 * @param {MarkdownIt} parser
 */
function tasks(parser) {
  parser.core.ruler.after('inline', 'tasks', (state) => {
    state.tokens.forEach((token, index) => {
      const first = token.children?.[0];
      const item = state.tokens[index - 2];
      if (token.type !== 'inline' || item?.type !== 'list_item_open' || first?.type !== 'text') return;
      const found = /^\[([ xX])\](?:\s+|$)/.exec(first.content);
      if (!found) return;
      item.attrJoin('class', 'task');
      first.content = first.content.slice(found[0].length);
      const box = new state.Token('task', 'input', 0);
      box.meta = found[1] !== ' ';
      token.children?.unshift(box);
    });
  });
  parser.renderer.rules.task = (tokens, index) => `<input type="checkbox" disabled${tokens[index]?.meta ? ' checked' : ''}> `;
}
