// The dialog with the documents that tools search.

import { useEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { add, forget, into, library, libraryFailure, loadLibrary, offered, remove, sending, share, status, transfers } from '../state/documents.js';
import { t } from '../state/language.js';
import { chosen } from '../state/picked.js';
import { account, dialog } from '../state/store.js';
import { moment, number, oneLine, size } from '../text/format.js';
import { Dialog } from '../components/dialog.js';
import { useFocus } from '../components/focus.js';
import { Icon } from '../components/icon.js';
import { Sure } from '../components/sure.js';

/** @import { DocumentRow } from '../state/types.d.ts' */

export function Documents() {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { loadLibrary(); }, []);
  const close = () => {
    forget();
    into.value = '';
    dialog.value = '';
  };
  const { documents, total } = library.value ?? { documents: [], total: 0 };
  const folders = [...Map.groupBy(documents, ({ path }) => parts(path).folder)].sort(ownFirst);
  const failure = libraryFailure.value;
  // A button that is gone would take the focus along.
  const toList = () => list.current?.focus();
  const stop = () => {
    sending.value?.abort();
    toList();
  };
  return html`<${Dialog} id="documents" title=${t.documents} about=${html`<p id="documents-total">${failure ? '' : number(total)}</p>`} onClose=${close}>
    <p class="documents-about">${t.documentsAbout}</p>
    ${!failure && library.value?.may_add && html`<${Pickers} extensions=${library.value.extensions} folders=${ownFolders(documents)} />`}
    ${offered.value.length > 0 && html`<${Offer} onAnswer=${toList} />`}
    <div class="documents-state">
      <p id="documents-status" role="status">${status.value}</p>
      ${sending.value && html`<button id="documents-stop" type="button" onClick=${stop}>${t.stop}</button>`}
    </div>
    <ul id="transfers" aria-label=${t.filesAdded}>${transfers.value.map((transfer, index) => html`<${TransferRow} key=${index} ...${transfer} />`)}</ul>
    <div id="documents-list" tabindex="-1" ref=${list}>
      ${failure ? html`<p class="empty" role="alert">${failure}</p>` : html`
        ${folders.map(([folder, members]) => html`<${Folder} key=${folder} folder=${folder} members=${members} onRemoved=${toList} />`)}
        ${library.value && total === 0 && html`<p class="empty">${t.noDocuments}</p>`}
        ${total > documents.length && html`<p class="empty">${t.moreDocuments(number(total - documents.length))}</p>`}`}
    </div>
  </${Dialog}>`;
}

/** @param {{ extensions: string[], folders: string[] }} properties `folders` that the user has */
function Pickers({ extensions, folders }) {
  const files = useRef(/** @type {HTMLInputElement | null} */ (null));
  const folder = useRef(/** @type {HTMLInputElement | null} */ (null));
  const take = (/** @type {any} */ event) => add(chosen(event.target));
  return html`<div id="documents-add">
    <button id="documents-files" class="main" type="button" onClick=${() => files.current?.click()}>${t.addFiles}</button>
    <button id="documents-folder" type="button" onClick=${() => folder.current?.click()}>${t.addFolder}</button>
    <span>${t.orDrop}</span>
    <label><span>${t.folder}</span><input id="documents-into" list="documents-folders" maxlength="1000" autocomplete="off" spellcheck="false" placeholder=${t.folderAbout}
      value=${into} onInput=${(/** @type {any} */ event) => { into.value = event.target.value; }} /></label>
    <datalist id="documents-folders">${folders.map((name) => html`<option value=${name}></option>`)}</datalist>
    <input type="file" multiple hidden ref=${files} accept=${extensions.map((end) => `.${end}`).join(',')} onChange=${take} />
    <input type="file" webkitdirectory hidden ref=${folder} onChange=${take} />
  </div>`;
}

/**
 * What was dropped, before it is everybody's.
 * @param {{ onAnswer: () => void }} properties
 */
function Offer({ onAnswer }) {
  const first = useFocus();
  const answer = (/** @type {() => unknown} */ run) => () => {
    run();
    onAnswer();
  };
  const names = offered.value.map(({ name }) => name).join(', ');
  return html`<div id="documents-offer" role="group" aria-label=${t.shareQuestion(offered.value.length)}>
    <p><b>${t.shareQuestion(offered.value.length)}</b> <span class="offered">${oneLine(names, 300)}</span></p>
    <button id="documents-share" class="main" type="button" ref=${first} onClick=${answer(share)}>${t.share}</button>
    <button type="button" onClick=${answer(() => { offered.value = []; })}>${t.cancel}</button>
  </div>`;
}

/** @param {import('../state/documents.js').Transfer} properties */
function TransferRow({ name, state, outcome, part }) {
  const ended = outcome !== '' && outcome !== 'sending';
  return html`<li class="transfer" data-outcome=${ended ? outcome : undefined}>
    <span class="transfer-mark">${ended ? html`<${Icon} name=${outcome === 'failed' ? 'failed' : 'done'} />` : outcome === 'sending' && html`<span class="spinner"></span>`}</span>
    <span><span class="transfer-name">${name}</span> <span class="transfer-state">${state}</span></span>
    ${!ended && html`<progress max="1" value=${part !== null && part < 1 ? part : undefined} aria-label=${t.progressOf(name)}></progress>`}
  </li>`;
}

/** @param {{ folder: string, members: DocumentRow[], onRemoved: () => void }} properties */
function Folder({ folder, members, onRemoved }) {
  const all = members.length > 1 && members.every((document) => document.removable);
  return html`<section aria-label=${folder}>
    <div class="folder-head"><h3>${folder}</h3><span class="count">${members.length}</span>
      ${all && html`<${Removal} path=${folder} what=${t.allIn(folder)} word=${t.removeAll} onRemoved=${onRemoved} />`}</div>
    <ul>${members.map((document) => html`<${Document} key=${document.path} ...${document} onRemoved=${onRemoved} />`)}</ul>
  </section>`;
}

/** @param {DocumentRow & { onRemoved: () => void }} properties */
function Document({ path, title, kind, bytes, passages, added, removable, onRemoved }) {
  const { name } = parts(path);
  const facts = [kind, size(bytes), t.passages(passages), t.addedAt(moment(added))];
  return html`<li class="document">
    <span class="document-name">${name}</span>
    ${title !== name && !name.startsWith(`${title}.`) && html`<span class="document-title">${title}</span>`}
    <span class="document-facts">${facts.join(' · ')}</span>
    ${removable && html`<${Removal} path=${path} what=${name} word=${t.remove} onRemoved=${onRemoved} />`}
  </li>`;
}

/** @param {{ path: string, what: string, word: string, onRemoved: () => void }} properties */
function Removal({ path, what, word, onRemoved }) {
  const sure = () => {
    onRemoved();
    remove(path, what);
  };
  return html`<span class="removal"><${Sure} word=${word} label=${t.removeWhat(what)} question=${t.removeQuestion(what)} quiet yes=${t.remove} no=${t.keep} onSure=${sure} /></span>`;
}

/**
 * The folders of what the user has added, as they are named when something is added.
 * @param {DocumentRow[]} documents
 */
function ownFolders(documents) {
  const own = `uploads/${account.value?.user}/`;
  return [...new Set(documents.map(({ path }) => `${parts(path).folder}/`).filter((folder) => folder.startsWith(own) && folder !== own).map((folder) => folder.slice(own.length, -1)))].sort();
}

/**
 * @param {[string, DocumentRow[]]} one
 * @param {[string, DocumentRow[]]} other
 */
function ownFirst([folder, [first]], [otherFolder, [other]]) {
  return Number(other?.removable) - Number(first?.removable) || (folder < otherFolder ? -1 : 1);
}

/** @param {string} path */
function parts(path) {
  const at = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return { folder: path.slice(0, Math.max(at, 0)) || '/', name: path.slice(at + 1) };
}
