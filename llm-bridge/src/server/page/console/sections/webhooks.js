// Messages that webhooks could not deliver.

import { html } from '../../state/html.js';
import { letters, redeliver } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { c } from '../state.js';

export function Webhooks() {
  const all = useLoaded(letters);
  const { fault, busy, change } = useChange(all.again);
  return html`<p class="bar"><button type="button" onClick=${all.again}>${c.lookAgain}</button></p>
    <${Fault} text=${all.fault || fault} />
    ${all.value && html`<${Table} label=${c.deadLetters} empty=${c.noLetters} columns=${[c.address, c.event, c.cause, c.attempts, c.time, c.actions]}
      rows=${all.value.map((letter) => ({ key: letter.id, cells: [
        letter.url, html`<code>${JSON.stringify(letter.event)}</code>`, html`<span class="bad">${letter.cause}</span>`, String(letter.attempts), exact(letter.ts),
        html`<button type="button" disabled=${busy} onClick=${() => change(() => redeliver(letter.id), c.sentAgain)}>${c.sendAgain}</button>`,
      ] }))} />`}`;
}
