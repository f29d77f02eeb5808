// The calls of everybody that wait for a person.

import { useEffect } from '../../vendor/hooks.js';
import { Approval } from '../../components/approval.js';
import { approvals } from '../../state/api.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { visible } from '../../text/visible.js';
import { Fault, useLoaded } from '../parts/loaded.js';
import { c } from '../state.js';

/** How often it is looked for them, in milliseconds. */
const AGAIN = 5000;

export function Approvals() {
  const { value, fault, again } = useLoaded(approvals);
  useEffect(() => {
    const clock = setInterval(again, AGAIN);
    return () => clearInterval(clock);
  }, []);
  return html`<${Fault} text=${fault} onAgain=${again} />
    ${value?.length === 0 && html`<p class="empty">${c.nothingWaits}</p>`}
    <ul class="cards">${value?.map((/** @type {any} */ one) => html`<li class="card" key=${one.id}>
      <p><code>${one.tool}</code> ${t.asksFor(one.user)}</p>
      <${Approval} id=${one.id} reason=${one.reason} call=${{ answer_by: one.expires_at }} onAnswer=${again} />
      <pre tabindex="0" role="group" aria-label=${t.arguments}>${visible(JSON.stringify(one.arguments, null, 2))}</pre>
    </li>`)}</ul>`;
}
