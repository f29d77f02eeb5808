// Mathematics in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. KaTeX draws it once it is loaded; until then its source is shown.

/** @import { BlockState, InlineState, MarkdownIt } from '../vendor/markdown-it.js' */

/** @type {[open: string, close: string, display: boolean][]} */
const DELIMITERS = [['$$', '$$', true], ['\\[', '\\]', true], ['\\(', '\\)', false], ['$', '$', false]];

/**
 * A plugin of markdown-it.
 * @param {MarkdownIt} parser
 */
export function mathematics(parser) {
  parser.inline.ruler.before('escape', 'mathematics', inline);
  parser.block.ruler.before('fence', 'mathematics', block, { alt: ['paragraph', 'reference', 'blockquote', 'list'] });
  const shown = (/** @type {string} */ tex, /** @type {boolean} */ display) =>
    `<span class="math${display ? ' display' : ''}">${parser.utils.escapeHtml(tex)}</span>`;
  parser.renderer.rules.math = (tokens, index) => shown(tokens[index]?.content ?? '', tokens[index]?.meta);
  parser.renderer.rules.math_block = (tokens, index) => `<p>${shown(tokens[index]?.content ?? '', true)}</p>\n`;
}

/**
 * @param {InlineState} state
 * @param {boolean} silent
 */
function inline(state, silent) {
  const { src, pos } = state;
  const first = src[pos];
  if (first !== '$' && first !== '\\') return false;
  const delimiter = DELIMITERS.find(([open]) => src.startsWith(open, pos));
  if (!delimiter) return false;
  const [open, close, display] = delimiter;
  const begin = pos + open.length;
  if (begin >= (unclosed.get(state)?.[close] ?? Infinity)) return false;
  const end = ending(src, begin, close);
  if (end < 0) {
    unclosed.set(state, { ...unclosed.get(state), [close]: begin });
    return false;
  }
  const tex = src.slice(begin, end);
  // `$5 and $6` are prices.
  if (open === '$' && (/^\s|\s$/.test(tex) || /^\d/.test(src.slice(end + 1)))) return false;
  if (tex.trim() === '') return false;
  if (!silent) {
    const token = state.push('math', 'span', 0);
    token.content = tex;
    token.meta = display;
  }
  state.pos = end + close.length;
  return true;
}

/** From where on a text has none of a closing delimiter: looked for from each opening one, the text would be read again and again. @type {WeakMap<InlineState, Record<string, number>>} */
const unclosed = new WeakMap();

/**
 * Where the closing delimiter is; one behind a backslash is none.
 * @param {string} text
 * @param {number} from
 * @param {string} close
 */
function ending(text, from, close) {
  for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
    if (close[0] === '\\' || text[at - 1] !== '\\') return at;
  }
  return -1;
}

/** Where a closing delimiter has text behind it, and from where on it is the next one, likewise. @type {WeakMap<BlockState, Record<string, { from: number, line: number }>>} */
const behind = new WeakMap();

/**
 * A formula on lines of its own. One that is not closed goes on to the end, as it grows.
 * @param {BlockState} state
 * @param {number} startLine
 * @param {number} endLine
 * @param {boolean} silent
 */
function block(state, startLine, endLine, silent) {
  const begin = (state.bMarks[startLine] ?? 0) + (state.tShift[startLine] ?? 0);
  const delimiter = DELIMITERS.find(([open, , display]) => display && state.src.startsWith(open, begin));
  if (!delimiter || (state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false;
  const [open, close] = delimiter;
  const followed = behind.get(state)?.[close];
  if (followed && followed.from <= startLine && startLine < followed.line && followed.line < endLine) return false;
  let line = startLine;
  const lines = [];
  for (; line < endLine; line += 1) {
    const from = line === startLine ? begin + open.length : (state.bMarks[line] ?? 0);
    const text = state.src.slice(from, state.eMarks[line]);
    const end = text.indexOf(close);
    if (end < 0) {
      lines.push(`${text}\n`);
      continue;
    }
    // Text behind it makes it a formula in a paragraph.
    if (text.slice(end + close.length).trim() !== '') {
      behind.set(state, { ...behind.get(state), [close]: { from: startLine, line } });
      return false;
    }
    lines.push(text.slice(0, end));
    line += 1;
    break;
  }
  if (silent) return true;
  const token = state.push('math_block', 'p', 0);
  token.block = true;
  token.content = lines.join('').trim();
  token.map = [startLine, line];
  state.line = line;
  return true;
}

/** @type {Promise<any> | null} */
let loading = null;

function load() {
  loading ??= (async () => {
    const styles = document.createElement('link');
    styles.rel = 'stylesheet';
    styles.href = new URL('../vendor/katex.css', import.meta.url).href;
    document.head.append(styles);
    await import('../vendor/katex.js');
    return /** @type {any} */ (globalThis).katex;
  })();
  return loading;
}

/** Longer formulas are shown as they are written, in characters: each takes the time of a drawing of its own. */
const MOST = 5_000;
/** What one may become by the commands that it defines, in characters. */
const MOST_DEFINED = 10_000;
const DEFINES = /\\(?:[egx]?def|(?:new|renew|provide)command|let|futurelet|global|long)(?![a-zA-Z])/;

/**
 * How many commands of a formula are replaced by what they stand for. Of those that it defines itself each may be as long as the formula, and with
 * arguments as long as its square.
 * @param {string} tex
 */
function expansions(tex) {
  if (!DEFINES.test(tex)) return 500;
  const longest = tex.includes('#') ? tex.length ** 2 / 100 : tex.length;
  return Math.min(Math.floor(MOST_DEFINED / longest), 500);
}

/** So long formulas are drawn at once, in milliseconds: a person may be typing. */
const SLICE = 8;

/** Lets keys and frames have their turn. */
const others = () => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = resolve;
  port2.postMessage(null);
});

/**
 * Draws the formulas in elements, a few at a time.
 * @param {Element[]} elements
 */
export async function draw(elements) {
  const formulas = /** @type {HTMLElement[]} */ (elements.flatMap((element) => [...element.querySelectorAll('.math:not(.drawn)')]));
  if (formulas.length === 0) return;
  const katex = await load();
  let began = performance.now();
  for (const formula of formulas) {
    if (performance.now() - began > SLICE) {
      await others();
      began = performance.now();
    }
    // It has been drawn anew meanwhile, as a text that grows is.
    if (!formula.isConnected) continue;
    const tex = formula.textContent ?? '';
    formula.classList.add('drawn');
    if (tex.length > MOST) continue;
    // Bounds: what a formula may expand to, and how large it may be drawn.
    const options = { displayMode: formula.classList.contains('display'), throwOnError: true, strict: 'ignore', trust: false, maxExpand: expansions(tex), maxSize: 25 };
    try {
      katex.render(tex, formula, options);
    } catch (error) {
      formula.textContent = tex;
      formula.classList.add('wrong');
      formula.title = /** @type {Error} */ (error).message;
    }
  }
}
