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
    // What ends the sentence or the bracket around an address is no part of it.
    const after = /(?:[.,;:!?'*]|(?<!\([^)]*)\))*$/.exec(part)?.[0] ?? '';
    const address = part.slice(0, part.length - after.length);
    return URL.canParse(address)
      ? [html`<a href=${address} target="_blank" rel="noopener noreferrer nofollow">${address}</a>`, after]
      : [part];
  });
}
