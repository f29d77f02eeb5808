// The calls of everybody that wait for a person, and what people have allowed beforehand.

import { useEffect, useLayoutEffect } from '../../vendor/hooks.js';
import { Approval } from '../../components/approval.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { loadTools } from '../../state/server.js';
import { waiting as own } from '../../state/store.js';
import { visible } from '../../text/visible.js';
import { waitingCalls } from '../api.js';
import { Fault, useEvery, useLoaded } from '../parts/loaded.js';
import { c } from '../state.js';
import { Rules } from './rules.js';

/** How often it is looked for them, in milliseconds. */
const AGAIN = 5000;

export const Approvals = () => html`<div class="parts"><div><h2>${c.waitingCalls}</h2><${Waiting} /></div><${Rules} /></div>`;

/** The calls that wait. */
export function Waiting() {
  const waiting = useLoaded(waitingCalls);
  useEvery(AGAIN, waiting.look);
  // What may be remembered of one's own call is read there.
  useLayoutEffect(() => { own.value = (waiting.value ?? []).map((one) => ({ ...one, kind: 'approval' })); }, [waiting.value]);
  // What they take, for who changes the arguments first.
  useEffect(() => { loadTools(); }, []);
  return html`<${Fault} text=${waiting.fault} onAgain=${waiting.again} />
    ${waiting.value?.length === 0 && html`<p class="empty">${c.nothingWaits}</p>`}
    <ul class="cards">${waiting.value?.map((one) => html`<li class="card" key=${one.id}>
      <p><code>${one.tool}</code> ${t.asksFor(one.user)}</p>
      <${Asked} call=${one} onAnswer=${waiting.again} />
    </li>`)}</ul>`;
}

/**
 * A question whether a call may be made, with its arguments whole.
 * @param {{ call: import('../api.js').WaitingCall, onAnswer: () => void }} properties
 */
export function Asked({ call: { id, tool, reason, arguments: args, deadline }, onAnswer }) {
  return html`<${Approval} id=${id} reason=${reason} call=${{ name: tool, arguments: args, deadline }} onAnswer=${onAnswer} />
    <pre tabindex="0" role="group" aria-label=${t.arguments}>${visible(JSON.stringify(args, null, 2))}</pre>`;
}
