// Shows a text that may grow as Markdown: blocks that are complete are drawn once, and only the last one again. What is far from the
// window waits as plain text until it comes near.

import { t } from '../state/language.js';
import { frame } from './code.js';
import { letScroll } from './elements.js';
import { blocks, load, loaded, refersAhead, rendered } from './markdown.js';
import { draw } from './mathematics.js';

/** A drawing may take one part of the time, and the rest is for the person, who waits for the end of a text that has come whole. */
const REST = 4;
const REST_AT_END = 1;
/** So much of a text that grows is drawn at once, in characters: more would keep the person waiting. */
const PIECE = 2_000;
/** So many blocks are put together, so that the browser passes over them at once where they are far from the window. */
const GROUP = 20;

/**
 * Calls back when the next frame is on the screen.
 * @param {() => void} then
 */
function painted(then) {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = then;
    port2.postMessage(null);
  });
}

/** @type {WeakMap<Element, () => void>} */
const near = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    near.get(target)?.();
  }
}, { rootMargin: '1500px 0px' });

let views = 0;

/** The view of one text. */
export class TextView {
  #text = '';
  #growing = false;
  /** How much of the text is drawn for good, in characters. */
  #drawn = 0;
  /** @type {Node[]} */
  #open = [];
  /** What is drawn for good, and not put together yet. @type {ChildNode[]} */
  #loose = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #again = 0;
  #isPainting = false;
  /** Whether there is more to draw by then. */
  #isWaiting = false;
  #hasGrown = false;
  #isNear = false;
  #id = `text-${views += 1}`;
  #begun = false;
  /** What is done with a part of the text that is drawn. @type {(content: DocumentFragment) => void} */
  finish = () => {};

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    near.set(element, () => {
      this.#isNear = true;
      this.#draw();
    });
    observer.observe(element);
  }

  /**
   * @param {string} text
   * @param {boolean} growing whether more may come
   */
  show(text, growing) {
    if (text === this.#text && growing === this.#growing) return;
    if (!text.startsWith(this.#text)) this.#reset();
    this.#text = text;
    this.#growing = growing;
    this.#hasGrown ||= growing;
    if (growing || this.#begun) this.#isNear = true;
    if (this.#isNear) this.#plan();
    else this.element.textContent = text;
  }

  /** Stops what is planned. */
  end() {
    clearTimeout(this.#timer);
    observer.unobserve(this.element);
  }

  #reset() {
    this.#drawn = 0;
    this.#open = [];
    this.#loose = [];
    this.#begun = false;
    this.element.replaceChildren();
    this.element.classList.add('plain');
  }

  #plan() {
    clearTimeout(this.#timer);
    const left = this.#again - performance.now();
    // It is not all there yet: neither for who waits for it, nor for a screen reader.
    if (this.#isPainting || left > 0) this.element.ariaBusy = 'true';
    if (this.#isPainting) this.#isWaiting = true;
    else if (left <= 0) this.#draw();
    else this.#timer = setTimeout(() => this.#draw(), left);
  }

  /**
   * What a drawing has cost is known when it is on the screen: most of it may be layout.
   * @param {number} began
   */
  #rest(began) {
    this.#isPainting = true;
    painted(() => {
      const now = performance.now();
      this.#isPainting = false;
      this.#again = now + (this.#growing ? REST : REST_AT_END) * (now - began);
      if (!this.#isWaiting) return;
      this.#isWaiting = false;
      this.#plan();
    });
  }

  #draw() {
    if (!loaded()) {
      this.element.textContent = this.#text;
      this.element.ariaBusy = null;
      load().then(() => this.#draw(), () => {});
      return;
    }
    const began = performance.now();
    if (!this.#begun) {
      this.element.replaceChildren();
      this.element.classList.remove('plain');
      this.#begun = true;
    }
    if (!this.#growing && (!this.#hasGrown || refersAhead(this.#text))) this.#whole();
    else if (this.#blocks()) this.#isWaiting = true;
    this.element.ariaBusy = this.#isWaiting ? 'true' : null;
    if (this.#growing || this.#isWaiting) this.#rest(began);
  }

  #whole() {
    const content = parsed(rendered(this.#text, this.#id), true);
    this.finish(content);
    this.element.replaceChildren(content);
    // Where it goes on after all, as an answer that was cut off, it does so within its last block.
    this.#drawn = 0;
    this.#open = [...this.element.childNodes];
    this.#loose = [];
    draw([this.element]);
  }

  /** Draws what has come, up to a piece of it; whether there is more. */
  #blocks() {
    const left = this.#text.slice(this.#drawn);
    let size = PIECE;
    let piece = blocks(left.slice(0, size));
    while (piece.from === 0 && size < left.length) piece = blocks(left.slice(0, size *= 2));
    const hasMore = size < left.length;
    for (const node of this.#open) node.parentNode?.removeChild(node);
    const settled = parsed(piece.complete, true);
    // The last block of a piece is only a part of one.
    const rest = parsed(hasMore ? '' : piece.open, !this.#growing);
    this.finish(settled);
    this.finish(rest);
    this.#open = [...rest.childNodes];
    draw([...settled.children, ...rest.children]);
    this.#loose.push(...settled.childNodes);
    this.element.append(settled, rest);
    this.#drawn += piece.from;
    this.#gather();
    return hasMore;
  }

  /** Puts blocks together that are far from where the text grows. */
  #gather() {
    // Each block has the end of its line behind it.
    while (this.#loose.length >= 4 * GROUP) {
      const nodes = this.#loose.splice(0, 2 * GROUP);
      const group = document.createElement('div');
      group.className = 'blocks';
      nodes[0]?.before(group);
      group.append(...nodes);
    }
  }
}

/**
 * What Markdown has become, ready for the page.
 * @param {string} html
 * @param {boolean} complete
 */
function parsed(html, complete) {
  // A template's content is inert: nothing loads before it is prepared.
  const template = document.createElement('template');
  template.innerHTML = html;
  const { content } = template;
  for (const image of content.querySelectorAll('img')) image.replaceWith(picture(image));
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (content.querySelectorAll('a[href]'))) {
    if (link.getAttribute('href')?.startsWith('#')) inPage(link);
    else Object.assign(link, { target: '_blank', rel: 'noopener noreferrer nofollow' });
  }
  for (const table of content.querySelectorAll('table')) frameTable(table);
  // As its own letters stand.
  for (const block of /** @type {Iterable<HTMLElement>} */ (content.children)) if (block.tagName !== 'PRE') block.dir = 'auto';
  frame(content, complete);
  return content;
}

/**
 * Loading a picture from elsewhere tells its server who reads the answer; the reader decides. Its text is shown in either case.
 * @param {HTMLImageElement} image
 */
function picture(image) {
  const address = image.getAttribute('src') ?? '';
  if (/^data:image\/(?:png|jpeg|gif|webp);/.test(address)) return image;
  const text = image.alt || address || t.picture;
  if (!/^https?:/.test(address)) return document.createTextNode(text);
  const link = document.createElement('a');
  link.href = address;
  link.className = 'picture';
  link.textContent = text;
  return link;
}

/**
 * A footnote and the way back, without a change of the page's address.
 * @param {HTMLAnchorElement} link
 */
function inPage(link) {
  const target = (link.getAttribute('href') ?? '').slice(1);
  link.addEventListener('click', (event) => {
    event.preventDefault();
    const found = document.getElementById(target);
    found?.setAttribute('tabindex', '-1');
    found?.scrollIntoView({ block: 'center' });
    found?.focus({ preventScroll: true });
  });
}

/**
 * Lets a table scroll by itself.
 * @param {HTMLTableElement} table
 */
function frameTable(table) {
  const frame = document.createElement('div');
  frame.className = 'scroll';
  table.replaceWith(frame);
  frame.append(table);
  letScroll(frame, t.table);
}
