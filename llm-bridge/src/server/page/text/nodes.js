// Plain texts as nodes: nothing in them is Markdown or HTML.

import { html } from '../state/html.js';

/**
 * The nodes of a description: what stands between backticks is code.
 * @param {string | undefined | null} text
 */
export function prose(text) {
  return (text ?? '').split(/`([^`]+)`/).map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));
}

/**
 * The nodes of a plain text: its web addresses are links.
 * @param {string} text
 */
export function linked(text) {
  return text.split(/(https?:\/\/[^\s<>"]+)/).flatMap((part, index) => {
    if (index % 2 === 0) return [part];
    const end = ownEnd(part);
    const [address, after] = [part.slice(0, end), part.slice(end)];
    return URL.canParse(address)
      ? [html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow">${address}</a>`, after]
      : [part];
  });
}

/**
 * Where an address ends: what ends the sentence or the bracket around it is no part of it. A loop, as a pattern would begin anew at each mark.
 * @param {string} address
 */
function ownEnd(address) {
  let end = address.length;
  for (; end > 0; end--) {
    const last = address[end - 1] ?? '';
    if (".,;:!?'*".includes(last)) continue;
    if (last !== ')') break;
    let before = end - 2;
    while (before >= 0 && address[before] !== '(' && address[before] !== ')') before--;
    if (address[before] === '(') break;
  }
  return end;
}
