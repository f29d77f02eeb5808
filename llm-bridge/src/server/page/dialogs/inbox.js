// All that waits for an answer of this person, whichever chat it is in.

import { useEffect, useLayoutEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { dialog, waiting } from '../state/store.js';
import { Approval } from '../components/approval.js';
import { Block, QuestionForm } from '../components/call.js';
import { Dialog } from '../components/dialog.js';
import { focusQuestion } from '../components/header.js';

export function Inbox() {
  const close = () => { dialog.value = ''; };
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  // Which of them has the focus, which goes to the next one with its answer.
  const at = useRef(-1);
  const note = (/** @type {any} */ event) => { at.current = [...(list.current?.children ?? [])].indexOf(event.target.closest('li')); };
  useLayoutEffect(() => {
    if (at.current < 0 || document.activeElement !== document.body) return;
    const items = [...(list.current?.children ?? [])];
    const next = items[at.current] ?? items.at(-1) ?? list.current?.previousElementSibling;
    /** @type {HTMLElement | undefined} */ (next)?.focus();
  }, [waiting.value]);
  // The button that has opened it is gone with what waited.
  useEffect(() => () => { if (document.activeElement === document.body) focusQuestion(); }, []);
  return html`<${Dialog} id="inbox" title=${t.waiting} onClose=${close}>
    ${waiting.value.length === 0 && html`<p class="empty" tabindex="-1">${t.nothingWaits}</p>`}
    <ul ref=${list} onfocusin=${note}>${waiting.value.map((one) => html`<li class="call inbox-item" tabindex="-1" key=${one.id}>
      <p><code class="call-name">${one.tool}</code>${one.user && html` <span class="call-time">${t.asksFor(one.user)}</span>`}</p>
      <div class="call-ask">${one.kind === 'approval'
        ? html`<${Approval} id=${one.id} reason=${one.reason} call=${{ name: one.tool, arguments: one.arguments, answer_by: one.expires_at }} />`
        : html`<${QuestionForm} question=${/** @type {any} */ (one)} call=${{ answer_by: one.expires_at }} />`}</div>
      ${one.kind === 'approval' && html`<div class="call-body"><${Block} title=${t.arguments} value=${one.arguments} /></div>`}
    </li>`)}</ul>
  </${Dialog}>`;
}
