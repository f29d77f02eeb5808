// Small helpers for building the page. Text always becomes text nodes here;
// the one place that accepts HTML is markdown.js.

const SVG = 'http://www.w3.org/2000/svg';

const ICONS = {
  done: 'M4.5 10.5l3.5 3.5 7.5-8',
  failed: 'M10 5.5v5.5M10 14.2v.3',
  cancelled: 'M5.5 10h9',
  chevron: 'M7.5 5l5 5-5 5',
  copy: 'M7 7V4.5h8.5V13H13M4.5 7H13v8.5H4.5z',
  retry: 'M15.5 10a5.5 5.5 0 1 1-1.7-4M15.5 3.5V7H12',
};

/** Builds an element; `on…` attributes are listeners, `null` and `false` are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The nodes of a description: what stands between backticks is code. */
export function prose(text) {
  return (text ?? '').split(/`([^`]+)`/).map((part, index) => (index % 2 ? el('code', {}, part) : part));
}

/** The nodes of a plain text: its web addresses are links. */
export function linked(text) {
  return text.split(/(https?:\/\/[^\s<>"]+)/).flatMap((part, index) => {
    if (index % 2 === 0) return [part];
    // What ends the sentence or the bracket around an address is no part of it.
    const end = /(?:[.,;:!?'*]|(?<!\([^)]*)\))*$/.exec(part)[0];
    const address = part.slice(0, part.length - end.length);
    return URL.canParse(address)
      ? [el('a', { href: address, target: '_blank', rel: 'noopener noreferrer nofollow' }, address), end]
      : [part];
  });
}

/** One of the drawn icons, hidden from assistive technology. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that copies what `text()` gives at the time of the click. */
export function copyButton(text, label = 'Copy') {
  const word = el('span', {}, label);
  const button = el('button', { type: 'button', class: 'copy quiet' }, icon('copy'), word);
  button.addEventListener('click', async () => {
    word.textContent = (await copy(text())) ? 'Copied' : 'Not copied';
    announce(word.textContent);
    setTimeout(() => { word.textContent = label; }, 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// The clipboard interface exists only on https and localhost; a server in the
// home network is reached over plain http.
function copyBySelection(text) {
  const field = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  field.value = text;
  document.body.append(field);
  const before = document.activeElement;
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  before?.focus();
  return copied;
}

/** Says a short text to screen readers without moving the focus. */
export function announce(text) {
  document.getElementById('announce').textContent = text;
}

/** A duration for people: `12 ms`, `3.4 s`, `2 min 5 s`. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
