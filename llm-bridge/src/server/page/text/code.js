// Code in an answer: its language, highlighted, copied, downloaded; a diagram is drawn.

import { download } from '../state/download.js';
import { t } from '../state/language.js';
import { copyText } from './copy.js';
import { diagram } from './diagram.js';
import { button, element, letScroll } from './elements.js';

/** Longer code is not highlighted, in characters. */
const MOST = 100_000;
/** The ends of files by language, where they are not the language's name. */
const ENDS = /** @type {Record<string, string>} */ ({
  python: 'py', javascript: 'js', typescript: 'ts', rust: 'rs', bash: 'sh', shell: 'sh', markdown: 'md', csharp: 'cs', ruby: 'rb', kotlin: 'kt', perl: 'pl', text: 'txt', plaintext: 'txt',
});

/** @type {Promise<any> | null} */
let loading = null;

/**
 * Gives each piece of code a head; what is complete is highlighted and drawn.
 * @param {ParentNode} content
 * @param {boolean} complete
 */
export function frame(content, complete) {
  for (const code of /** @type {HTMLElement[]} */ ([...content.querySelectorAll('pre')])) {
    const language = /\blanguage-(\S+)/.exec(code.firstElementChild?.className ?? '')?.[1] ?? '';
    const text = () => (code.textContent ?? '').replace(/\n$/, '');
    const frame = element('div', 'code-frame');
    const head = element('div', 'code-head');
    const copy = button(t.copy, () => copyText(text(), (word) => { copy.textContent = word ?? t.copy; }));
    const save = button(t.download, () => download(new Blob([text()], { type: 'text/plain' }), `code.${ENDS[language] ?? (/^\w{1,8}$/.test(language) ? language : 'txt')}`));
    const name = element('span', 'code-language');
    name.textContent = language;
    head.append(name, save, copy);
    code.replaceWith(frame);
    frame.append(head, code);
    letScroll(code, t.code);
    if (!complete) continue;
    if (language === 'mermaid') diagram(text(), code, head);
    else if (language) highlight(/** @type {HTMLElement} */ (code.firstElementChild), language);
  }
}

/**
 * @param {HTMLElement} code
 * @param {string} language
 */
async function highlight(code, language) {
  const text = code.textContent ?? '';
  if (text.length > MOST) return;
  loading ??= import('../vendor/highlight.js').then((module) => module.default);
  const highlighter = await loading;
  if (!highlighter.getLanguage(language)) return;
  // It escapes what it is given.
  code.innerHTML = highlighter.highlight(text, { language, ignoreIllegals: true }).value;
}
