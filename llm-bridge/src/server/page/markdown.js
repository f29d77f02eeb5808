// Finished text becomes HTML on the server, which sanitises it. This is the
// only place of the page where HTML enters the document.

import { rendered } from './api.js';
import { copyButton, el } from './dom.js';

/** Replaces the plain text in `target` by its rendering; keeps it when that fails. */
export async function render(markdown, target) {
  let html;
  try {
    html = await rendered(markdown);
  } catch {
    return;
  }
  // A template's content is inert: nothing loads before it is prepared.
  const template = document.createElement('template');
  template.innerHTML = html;
  prepare(template.content);
  target.replaceChildren(template.content);
  target.classList.remove('plain');
}

function prepare(content) {
  for (const link of content.querySelectorAll('a[href]')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
  }
  for (const image of content.querySelectorAll('img')) image.replaceWith(imageLink(image));
  for (const table of content.querySelectorAll('table')) frameTable(table);
  for (const code of content.querySelectorAll('pre')) frameCode(code);
}

// Loading an image tells its server who reads the answer; the reader decides.
function imageLink(image) {
  const address = image.getAttribute('src') ?? '';
  const text = image.alt || address || 'image';
  return /^https?:/.test(address)
    ? el('a', { href: address, target: '_blank', rel: 'noopener noreferrer nofollow' }, text)
    : text;
}

function frameTable(table) {
  const frame = el('div', { class: 'scroll' });
  table.replaceWith(frame);
  frame.append(table);
  letScroll(frame, 'Table');
}

function frameCode(code) {
  const language = /\blanguage-(\S+)/.exec(code.firstElementChild?.className ?? '')?.[1] ?? '';
  const copy = copyButton(() => code.textContent.replace(/\n$/, ''));
  const frame = el('div', { class: 'code-frame' }, el('div', { class: 'code-head' }, el('span', {}, language), copy));
  code.replaceWith(frame);
  frame.append(code);
  letScroll(code, 'Code');
}

// What scrolls must be reachable by keyboard.
function letScroll(node, label) {
  node.tabIndex = 0;
  node.setAttribute('role', 'region');
  node.setAttribute('aria-label', label);
}
