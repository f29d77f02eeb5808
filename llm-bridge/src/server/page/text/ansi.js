// What a compiler writes in the colours of a terminal, as nodes.

import { html } from '../state/html.js';

// A change of style, or another sequence of a terminal, which is left out.
const SEQUENCE = /\x1b\[([\d;]*)m|\x1b\[[\d;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g;

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** @typedef {{ colour: string | null, bold: boolean }} Style */

/**
 * The nodes of a text with the colours of a terminal.
 * @param {string} text
 */
export function coloured(text) {
  /** @type {any[]} */
  const nodes = [];
  /** @type {Style} */
  let style = { colour: null, bold: false };
  let end = 0;
  const add = (/** @type {string} */ part) => {
    if (!part) return;
    const kinds = [style.colour && `ansi-${style.colour}`, style.bold && 'ansi-bold'].filter(Boolean);
    nodes.push(kinds.length > 0 ? html`<span class=${kinds.join(' ')}>${part}</span>` : part);
  };
  for (const found of text.matchAll(SEQUENCE)) {
    add(text.slice(end, found.index));
    end = found.index + found[0].length;
    if (found[1] !== undefined) style = styled(style, found[1].split(';').map(Number));
  }
  add(text.slice(end));
  return nodes;
}

/**
 * @param {Style} style
 * @param {number[]} codes
 * @returns {Style}
 */
function styled(style, codes) {
  let { colour, bold } = style;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) [colour, bold] = [null, false];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code === 39) colour = null;
    else if (code >= 30 && code <= 37) colour = COLOURS[code - 30] ?? null;
    else if (code >= 90 && code <= 97) colour = COLOURS[code - 90] ?? null;
    else if (code === 38 || code === 48) {
      // One of 256 colours, of which the first 16 are these; or red, green and blue.
      if (code === 38 && codes[index + 1] === 5) colour = COLOURS[(codes[index + 2] ?? 0) % 8] ?? null;
      index += codes[index + 1] === 5 ? 2 : 4;
    }
  }
  return { colour, bold };
}
