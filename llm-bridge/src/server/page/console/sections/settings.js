// The settings of the server, with where each comes from.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { settings } from '../api.js';
import { Fault, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { account, c } from '../state.js';

/** @import { Setting } from '../api.js' */

/** So many fill more than one column. */
const MANY = 20;

export function Settings() {
  const { value, fault, again } = useLoaded(settings);
  const [filter, setFilter] = useState('');
  const [from, setFrom] = useState('');
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (value ?? []).filter((one) => (from === '' || one.from === from) && words.every((word) => `${one.key} ${one.place ?? ''}`.toLowerCase().includes(word)));
  if (account.value?.operator === false) return html`<p class="note">${c.settingsForOperators}</p>`;
  return html`<${Fault} text=${fault} onAgain=${again} />
    <form class="bar" id="settings-filter" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label class="grow"><span>${c.setting}</span><input type="search" spellcheck="false" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /></label>
      <label><span>${c.origin}</span><select value=${from} onChange=${(/** @type {any} */ event) => setFrom(event.target.value)}>
        <option value="">${c.kinds['']}</option>${Object.entries(c.origins).map(([name, word]) => html`<option value=${name} selected=${name === from}>${word}</option>`)}</select></label>
    </form>
    ${value && html`<div class=${found.length > MANY ? 'across' : ''}><${Table} label=${c.sections.settings} empty=${c.noSettings} columns=${[c.setting, c.value, c.origin]}
      rows=${found.map((one) => ({ key: one.key, cells: [html`<code>${one.key}</code>`, shown(one), html`${c.origins[one.from]}${one.place && html`<small><code>${one.place}</code></small>`}`] }))} /></div>`}`;
}

/** @param {Setting} setting */
function shown({ value, hidden }) {
  if (hidden) return html`<i>${c.hidden}</i>`;
  if (value === null) return '–';
  return html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`;
}
