// Where changes of tools are told, and the messages that could not be delivered.

import { html } from '../../state/html.js';
import { number, oneLine } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { visible } from '../../text/visible.js';
import { letters, redeliver, webhooks } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { c } from '../state.js';

export function Webhooks() {
  const endpoints = useLoaded(webhooks);
  const all = useLoaded(letters);
  const again = () => { endpoints.again(); all.again(); };
  const { fault, busy, change } = useChange(again);
  return html`<p class="bar"><button type="button" onClick=${again}>${c.lookAgain}</button></p>
    <${Fault} text=${endpoints.fault || all.fault || fault} />
    <div class="parts"><div><h2>${c.endpoints}</h2>${endpoints.value && html`<${Table} label=${c.sections.webhooks} empty=${c.noWebhooks} columns=${[c.address, c.tellsOf, c.waitingMessages]}
      rows=${endpoints.value.map(({ url, all_tenants: ofAll, waiting }, at) => ({ key: String(at), cells: [url, ofAll ? c.allTenants : c.thisTenant, number(waiting)] }))} />`}</div>
    <div><h2>${c.deadLetters}</h2>
    ${all.value && html`<${Table} label=${c.deadLetters} empty=${c.noLetters} columns=${[c.address, c.event, c.cause, c.attempts, c.time, c.actions]}
      rows=${all.value.map((letter) => ({ key: letter.id, cells: [
        letter.url, html`<code>${oneLine(visible(JSON.stringify(letter.event)), 300)}</code>`, html`<span class="bad">${prose(letter.cause)}</span>`, String(letter.attempts), exact(letter.ts),
        html`<button type="button" disabled=${busy} onClick=${() => change(() => redeliver(letter.id), c.sentAgain)}>${c.sendAgain}</button>`,
      ] }))} />`}</div></div>`;
}
