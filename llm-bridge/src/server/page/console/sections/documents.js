// The documents that tools search.

import { useEffect, useState } from '../../vendor/hooks.js';
import { Documents as Dialog } from '../../dialogs/documents.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { documents } from '../../state/api.js';
import { dialog } from '../../state/store.js';
import { searchDocuments } from '../api.js';
import { moment, number, size } from '../../text/format.js';
import { placed } from '../../text/place.js';
import { Fault, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';

export function Documents() {
  const { value, fault, again } = useLoaded(documents, [dialog.value]);
  useEffect(() => () => { dialog.value = ''; }, []);
  return html`<${Fault} text=${fault} onAgain=${again} />
    ${value && html`<p class="bar"><button type="button" class="main" aria-haspopup="dialog" onClick=${() => { dialog.value = 'documents'; }}>${c.addOrRemove}</button> <span>${c.documents(value.total)}</span></p>
    <${Table} label=${t.documents} empty=${t.noDocuments} columns=${[c.document, c.kind, c.size, c.passages, c.added_]}
      rows=${value.documents.map((one) => ({ key: one.path, cells: [one.path, one.kind, size(one.bytes), number(one.passages), moment(one.added)] }))} />`}
    ${value && value.total > 0 && html`<${Search} />`}
    ${dialog.value === 'documents' && html`<${Dialog} />`}`;
}

/** Searches as the tools do. */
function Search() {
  const [words, setWords] = useState('');
  const [asked, setAsked] = useState('');
  const found = useLoaded(async () => (asked === '' ? null : searchDocuments(asked)), [asked]);
  return html`<h2>${c.searchDocuments}</h2>
    <form class="bar" id="documents-search" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); setAsked(words.trim()); }}>
      <label class="grow"><span>${c.searchWords}</span><input maxlength="1000" value=${words} onInput=${(/** @type {any} */ event) => setWords(event.target.value)} /></label>
      <button type="submit">${c.search}</button>
    </form>
    <${Fault} text=${found.fault} onAgain=${found.again} />
    ${found.value?.length === 0 && html`<p class="empty">${c.nothingFound}</p>`}
    <ol class="cards" id="passages">${found.value?.map(({ path, title, section, place, text }) => html`<li class="card" key=${`${path} ${place}`}>
      <p><code>${path}</code>, ${placed(place)}: ${section || title}</p><pre tabindex="0" role="group" aria-label=${section || title}>${text}</pre></li>`)}</ol>`;
}
