// Which of several messages is shown: `2 / 3`, with the ways to the others.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { show } from '../state/chats.js';
import { chat } from '../state/store.js';
import { siblings } from '../state/tree.js';
import { Icon } from './icon.js';

/** @import { Message } from '../state/types.d.ts' */

/** @param {{ message: Message }} properties */
export function Branches({ message }) {
  const all = siblings(chat.value.messages, message);
  const at = all.indexOf(message);
  if (all.length < 2) return null;
  const step = (/** @type {number} */ by) => {
    const other = all[at + by];
    if (other) show(other.id);
  };
  return html`<span class="branches" role="group" aria-label=${t.branches}>
    <button type="button" class="quiet back" aria-label=${t.branchBefore} disabled=${at === 0} onClick=${() => step(-1)}><${Icon} name="chevron" /></button>
    <span>${at + 1} / ${all.length}</span>
    <button type="button" class="quiet" aria-label=${t.branchAfter} disabled=${at === all.length - 1} onClick=${() => step(1)}><${Icon} name="chevron" /></button>
  </span>`;
}
