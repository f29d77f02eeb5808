// Shows a text that may grow as Markdown: blocks that are complete are drawn once, and only the last one again. What is far from the
// window waits as plain text until it comes near.

import { t } from '../state/language.js';
import { frame } from './code.js';
import { letScroll } from './elements.js';
import { blocks, load, loaded, refersAhead, rendered } from './markdown.js';
import { draw } from './mathematics.js';

/** A drawing, with the frame that shows it, may take one part of the time, and the rest is for the person. */
const REST = 8;

/** So many blocks are put together, so that the browser passes over them at once where they are far from the window. */
const GROUP = 20;

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
    if (left <= 0 || !this.#growing) this.#draw();
    else this.#timer = setTimeout(() => this.#draw(), left);
  }

  #draw() {
    if (!loaded()) {
      this.element.textContent = this.#text;
      load().then(() => this.#draw(), () => {});
      return;
    }
    const began = performance.now();
    if (!this.#begun) {
      this.element.replaceChildren();
      this.element.classList.remove('plain');
      this.#begun = true;
    }
    if (!this.#growing && refersAhead(this.#text)) this.#whole();
    else this.#blocks();
    const drawn = performance.now() - began;
    this.#again = began + drawn * (1 + REST);
    if (this.#growing) frameTime((shown) => { this.#again = Math.max(this.#again, performance.now() + REST * (drawn + shown)); });
  }

  #whole() {
    const content = parsed(rendered(this.#text, this.#id), true);
    this.finish(content);
    this.element.replaceChildren(content);
    this.#drawn = this.#text.length;
    this.#open = [];
    this.#loose = [];
    draw([this.element]);
  }

  #blocks() {
    const { complete, open, from } = blocks(this.#text.slice(this.#drawn));
    for (const node of this.#open) node.parentNode?.removeChild(node);
    const settled = parsed(complete, true);
    const rest = parsed(open, !this.#growing);
    this.finish(settled);
    this.finish(rest);
    this.#open = [...rest.childNodes];
    draw([...settled.children, ...rest.children]);
    this.#loose.push(...settled.childNodes);
    this.element.append(settled, rest);
    this.#drawn += from;
    this.#gather();
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
 * Says how long the browser takes for the next frame, in milliseconds: the layout and the picture. A hidden tab has none.
 * @param {(ms: number) => void} tell
 */
function frameTime(tell) {
  requestAnimationFrame(() => {
    const began = performance.now();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => tell(performance.now() - began);
    port2.postMessage(null);
  });
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
