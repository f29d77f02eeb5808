// All that waits for an answer of this person, whichever chat it is in.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { dialog, waiting } from '../state/store.js';
import { Approval } from '../components/approval.js';
import { Block, QuestionForm } from '../components/call.js';
import { Dialog } from '../components/dialog.js';

export function Inbox() {
  const close = () => { dialog.value = ''; };
  return html`<${Dialog} id="inbox" title=${t.waiting} onClose=${close}>
    ${waiting.value.length === 0 && html`<p class="empty">${t.nothingWaits}</p>`}
    <ul>${waiting.value.map((one) => html`<li class="call inbox-item" key=${one.id}>
      <p><code class="call-name">${one.tool}</code>${one.user && html` <span class="call-time">${t.asksFor(one.user)}</span>`}</p>
      <div class="call-ask">${one.kind === 'approval'
        ? html`<${Approval} id=${one.id} reason=${one.reason} call=${{ name: one.tool, arguments: one.arguments, answer_by: one.expires_at }} />`
        : html`<${QuestionForm} question=${/** @type {any} */ (one)} call=${{ answer_by: one.expires_at }} />`}</div>
      ${one.kind === 'approval' && html`<div class="call-body"><${Block} title=${t.arguments} value=${one.arguments} /></div>`}
    </li>`)}</ul>
  </${Dialog}>`;
}
