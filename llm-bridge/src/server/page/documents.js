// The dialog with the documents: lists them, adds files one after the other, and removes.

import * as api from './api.js';
import { el } from './dom.js';
import { chosen } from './drop.js';
import { OUTCOMES, Transfer, isReadable } from './transfer.js';

const byId = (id) => document.getElementById(id);

/** Lists, adds and removes documents; `onChange` is called when there are others. */
export class DocumentDialog {
  #transfers = [];
  #leftOut = 0;
  #sending = null;

  constructor(onChange) {
    this.onChange = onChange;
    this.dialog = byId('documents');
    byId('documents-open').addEventListener('click', () => this.open());
    byId('documents-close').addEventListener('click', () => this.dialog.close());
    byId('documents-stop').addEventListener('click', () => this.#sending?.abort());
    const [files, folder] = byId('documents-add').querySelectorAll('input');
    this.picker = files;
    for (const [button, input] of [['documents-files', files], ['documents-folder', folder]]) {
      byId(button).addEventListener('click', () => input.click());
      input.addEventListener('change', () => this.add(chosen(input)));
    }
  }

  /** Shows the dialog, with what there is by now. */
  async open() {
    if (!this.dialog.open) {
      if (!this.#sending) this.#forget();
      this.dialog.showModal();
    }
    await this.#load();
  }

  /** Adds files, `{name, file}`, or a promise of them. */
  async add(given) {
    const [files] = await Promise.all([given, this.open()]);
    if (this.failure) return;
    if (!this.known.may_add) return this.#say('You may not add documents here.');
    if (!this.#sending) this.#forget();
    const wanted = files.filter(({ name }) => isWanted(name, this.known.extensions));
    this.#leftOut += files.length - wanted.length;
    const added = wanted.map((file) => new Transfer(file));
    this.#transfers.push(...added);
    byId('transfers').append(...added.map((transfer) => transfer.element));
    this.#say(`Adding ${count(this.#transfers.length, 'file')}`);
    if (!this.#sending) await this.#send();
  }

  async #send() {
    this.#sending = new AbortController();
    const { signal } = this.#sending;
    byId('documents-stop').hidden = false;
    // Others may be dropped meanwhile.
    for (let next = 0; next < this.#transfers.length; next += 1) {
      if (signal.aborted) this.#transfers[next].fail('Stopped');
      else await this.#transfers[next].send(this.known, signal);
    }
    this.#sending = null;
    // A button that is gone would take the focus along.
    if (document.activeElement === byId('documents-stop')) byId('documents-list').focus();
    byId('documents-stop').hidden = true;
    this.#say(this.#summary());
    await Promise.all([this.#load(), this.onChange()]);
  }

  #summary() {
    const ended = Map.groupBy(this.#transfers, (transfer) => transfer.outcome);
    const parts = Object.entries(OUTCOMES).filter(([outcome]) => ended.has(outcome)).map(([outcome, word]) => `${ended.get(outcome).length} ${word}`);
    if (this.#leftOut > 0) parts.push(`${count(this.#leftOut, 'hidden file or of another kind', 'hidden files or of other kinds')} left out`);
    return parts.length > 0 ? `${parts.join(', ')}.` : 'There is no file in it.';
  }

  #forget() {
    this.#transfers = [];
    this.#leftOut = 0;
    byId('transfers').replaceChildren();
    this.#say('');
  }

  #say(text) {
    byId('documents-status').textContent = text;
  }

  async #load() {
    try {
      this.known = await api.documents();
      this.failure = null;
    } catch (error) {
      this.failure = error.message;
    }
    this.#show();
  }

  #show() {
    const { documents, total, may_add: mayAdd, extensions } = this.known ?? { documents: [], total: 0, may_add: false, extensions: [] };
    byId('documents-add').hidden = !mayAdd || Boolean(this.failure);
    this.picker.accept = extensions.map((end) => `.${end}`).join(',');
    byId('documents-total').textContent = this.failure ? '' : String(total);
    const list = byId('documents-list');
    if (this.failure) return list.replaceChildren(el('p', { class: 'empty', role: 'alert' }, this.failure));
    const folders = [...Map.groupBy(documents, ({ path }) => parts(path).folder)].sort(ownFirst);
    list.replaceChildren(...folders.map(([folder, members]) => this.#folder(folder, members)));
    if (total === 0) list.append(el('p', { class: 'empty' }, 'There are none yet.'));
    if (total > documents.length) list.append(el('p', { class: 'empty' }, `${total - documents.length} more are not shown.`));
  }

  #folder(folder, members) {
    const all = members.length > 1 && members.every((document) => document.removable);
    return el('section', { 'aria-label': folder },
      el('div', { class: 'folder-head' }, el('h3', {}, folder), el('span', { class: 'count' }, String(members.length)),
        all ? this.#removal(folder, `all in ${folder}`, 'Remove all') : null),
      el('ul', {}, ...members.map((document) => this.#document(document))));
  }

  #document({ path, title, kind, bytes, passages, added, removable }) {
    const { name } = parts(path);
    const facts = [kind, size(bytes), count(passages, 'passage'), `added ${new Date(added).toLocaleDateString(undefined, { dateStyle: 'medium' })}`];
    return el('li', { class: 'document' },
      el('span', { class: 'document-name' }, name),
      title === name || name.startsWith(`${title}.`) ? null : el('span', { class: 'document-title' }, title),
      el('span', { class: 'document-facts' }, facts.join(' · ')),
      removable ? this.#removal(path, name, 'Remove') : null);
  }

  // Asks in its own place: what is removed is gone.
  #removal(path, what, word) {
    const remove = el('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${what}` }, word);
    const sure = el('button', { type: 'button', class: 'danger' }, 'Remove');
    const keep = el('button', { type: 'button' }, 'Keep');
    const place = el('span', { class: 'removal' }, remove);
    remove.addEventListener('click', () => {
      place.replaceChildren(el('span', {}, `Remove ${what}?`), sure, keep);
      keep.focus();
    });
    keep.addEventListener('click', () => {
      place.replaceChildren(remove);
      remove.focus();
    });
    sure.addEventListener('click', async () => {
      sure.disabled = true;
      try {
        await api.removeDocuments(path);
        this.#say(`Removed ${what}.`);
      } catch (error) {
        this.#say(error.message);
      }
      byId('documents-list').focus();
      await Promise.all([this.#load(), this.onChange()]);
    });
    return place;
  }
}

// Of a folder what can be read is taken; what is named itself is refused in words.
function isWanted(name, extensions) {
  const inFolder = name.includes('/');
  return !inFolder || (isReadable(name, extensions) && !name.split('/').some((part) => part.startsWith('.')));
}

function ownFirst([folder, [first]], [otherFolder, [other]]) {
  return other.removable - first.removable || (folder < otherFolder ? -1 : 1);
}

function parts(path) {
  const at = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return { folder: path.slice(0, Math.max(at, 0)) || '/', name: path.slice(at + 1) };
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const [number, unit] = bytes < 1_000_000 ? [bytes / 1000, 'kB'] : [bytes / 1_000_000, 'MB'];
  return `${number < 10 ? number.toFixed(1) : Math.round(number)} ${unit}`;
}
