// The conversation, which stays at its end while it grows, until the reader scrolls up.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { follow } from '../state/scroll.js';
import { chat, shown, sought } from '../state/store.js';
import { mark, rangesOf } from '../text/found.js';
import { Answer } from './answer.js';
import { Asked } from './asked.js';
import { Icon } from './icon.js';
import { Welcome } from './welcome.js';

/** @import { Message } from '../state/types.d.ts' */

/** @type {{ toEnd: () => void, stay: () => void } | null} */
let scroll = null;

/** Shows the end of the conversation. */
export const toEnd = () => scroll?.toEnd();

export function Log() {
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));
  const log = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    const button = document.getElementById('to-end');
    if (scroller.current && log.current && button) scroll = follow(scroller.current, log.current, button);
  }, []);
  const { id, begun } = chat.value;
  useLayoutEffect(() => toEnd(), [begun ?? id, shown.value.length]);
  useLayoutEffect(() => {
    mark([]);
    log.current?.querySelector('[data-sought]')?.removeAttribute('data-sought');
    if (scroller.current && sought.value) reveal(scroller.current, sought.value);
  }, [sought.value]);
  const messages = shown.value;
  return html`<main id="scroller" tabindex="-1" ref=${scroller}>
    ${messages.length === 0 && html`<${Welcome} />`}
    ${messages.length > 0 && html`<h1 class="unseen">${chat.value.title || t.conversation}</h1>`}
    <div id="log" class="column" role="log" aria-live="off" aria-label=${t.conversation} ref=${log}>
      <${Messages} key=${begun ?? id} messages=${messages} />
    </div>
  </main>`;
}

/**
 * By their places: one gets another id when the server knows it. In another chat nothing is open or asked any more.
 * @param {{ messages: Message[] }} properties
 */
function Messages({ messages }) {
  return messages.map((message, index) => (message.role === 'user'
    ? html`<${Asked} key=${index + message.role} message=${message} past=${index < messages.length - 2} />`
    : html`<${Answer} key=${index + message.role} message=${message} past=${index < messages.length - 2} />`));
}

/** So many frames a message has to become Markdown. */
const FRAMES = 60;

/**
 * Shows what a search has found: the message, and in it the first of the words.
 * @param {HTMLElement} scroller
 * @param {{ message: string, words: string[] }} found
 */
async function reveal(scroller, found) {
  const element = /** @type {HTMLElement | null} */ (scroller.querySelector(`[data-id="${CSS.escape(found.message)}"]`));
  if (!element) return;
  scroll?.stay();
  element.dataset.sought = '';
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
  element.scrollIntoView();
  for (let frame = 0; frame < FRAMES && (frame < 2 || element.querySelector('.text.plain')); frame += 1) await new Promise(requestAnimationFrame);
  if (sought.value !== found) return;
  const ranges = rangesOf(element, found.words);
  mark(ranges);
  const place = ranges[0]?.getBoundingClientRect() ?? element.getBoundingClientRect();
  scroll?.stay();
  scroller.scrollTop += place.top - scroller.getBoundingClientRect().top - scroller.clientHeight / 3;
}

/** The button that leads back to the end. */
export function ToEnd() {
  return html`<button id="to-end" type="button" hidden><${Icon} name="down" /><span>${t.latest}</span></button>`;
}
