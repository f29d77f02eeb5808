// The documents that tools search.

import { useEffect, useState } from '../../vendor/hooks.js';
import { Documents as Dialog } from '../../dialogs/documents.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { removeDocuments } from '../../state/api.js';
import { dialog } from '../../state/store.js';
import { documentsBelow, searchDocuments } from '../api.js';
import { moment, number, size } from '../../text/format.js';
import { placed } from '../../text/place.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';
import { Processing } from './processing.js';

export function Documents() {
  const [folder, setFolder] = useState('');
  const [below, setBelow] = useState('');
  const { value, fault, again } = useLoaded(() => documentsBelow(below), [below, dialog.value]);
  const { fault: refused, busy, change } = useChange(again);
  useEffect(() => () => { dialog.value = ''; }, []);
  const remove = (/** @type {string} */ path) => change(() => removeDocuments(path), c.removed(path));
  const show = (/** @type {Event} */ event) => {
    event.preventDefault();
    setBelow(folder.trim());
  };
  return html`<${Fault} text=${fault} onAgain=${again} />
    ${value && html`<div class="parts"><div><p class="bar"><button type="button" class="main" aria-haspopup="dialog" onClick=${() => { dialog.value = 'documents'; }}>${c.addOrRemove}</button></p>
    <form class="bar" id="documents-below" role="search" aria-label=${c.folder} onSubmit=${show}>
      <label class="grow"><span>${c.folder}</span><input maxlength="4096" autocomplete="off" spellcheck="false" placeholder=${c.folderAbout} value=${folder} onInput=${(/** @type {any} */ event) => setFolder(event.target.value)} /></label>
      <button type="submit">${c.show}</button>
      <span>${c.documents(value.total)}</span>
      ${below !== '' && value.total > 0 && html`<${Sure} word=${c.removeAll} title=${c.removeWhat(below)} question=${c.removeFolder(below, value.total)} disabled=${busy} onSure=${() => remove(below)} />`}
    </form>
    <${Fault} text=${refused} />
    <${Table} label=${t.documents} empty=${below === '' ? t.noDocuments : c.nothingBelow} columns=${[c.document, c.kind, c.size, c.passages, c.added_, c.actions]}
      rows=${value.documents.map((one) => ({ key: one.path, cells: [one.path, one.kind, size(one.bytes), number(one.passages), moment(one.added),
        one.removable && html`<${Sure} word=${c.remove} title=${c.removeWhat(one.path)} question=${c.removeAsk(one.path)} disabled=${busy} onSure=${() => remove(one.path)} />`] }))} />
    ${value.total > value.documents.length && html`<p class="note" id="documents-more">${c.documentsMore(value.total - value.documents.length)}</p>`}</div>
    ${(value.total > 0 || below !== '') && html`<${Search} /><${Processing} below=${below} />`}</div>`}
    ${dialog.value === 'documents' && html`<${Dialog} />`}`;
}

/** Searches as the tools do. */
function Search() {
  const [words, setWords] = useState('');
  const [asked, setAsked] = useState('');
  const found = useLoaded(async () => (asked === '' ? null : searchDocuments(asked)), [asked]);
  return html`<div><h2>${c.searchDocuments}</h2>
    <form class="bar" id="documents-search" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); setAsked(words.trim()); }}>
      <label class="grow"><span>${c.searchWords}</span><input maxlength="1000" value=${words} onInput=${(/** @type {any} */ event) => setWords(event.target.value)} /></label>
      <button type="submit">${c.search}</button>
    </form>
    <${Fault} text=${found.fault} onAgain=${found.again} />
    ${found.value?.length === 0 && html`<p class="empty">${c.nothingFound}</p>`}
    <ol class="cards" id="passages">${found.value?.map(({ path, title, section, place, text }) => html`<li class="card" key=${`${path} ${place}`}>
      <p><code>${path}</code>, ${placed(place)}: ${section || title}</p><pre tabindex="0" role="group" aria-label=${section || title}>${text}</pre></li>`)}</ol></div>`;
}
