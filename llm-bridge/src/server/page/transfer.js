// One file on its way to the server.

import * as api from './api.js';
import { el, icon } from './dom.js';

/** How files ended, in the words of the summary. */
export const OUTCOMES = { new: 'added', updated: 'updated', unchanged: 'unchanged', failed: 'not added' };

/** Shows a file that is to be added, and sends it. */
export class Transfer {
  outcome = null;

  constructor({ name, file }) {
    this.name = name;
    this.file = file;
    this.mark = el('span', { class: 'transfer-mark' });
    this.state = el('span', { class: 'transfer-state' }, 'Waiting');
    this.bar = el('progress', { max: 1, value: 0, 'aria-label': `Progress of ${name}` });
    this.element = el('li', { class: 'transfer' }, this.mark,
      el('span', {}, el('span', { class: 'transfer-name' }, name), ' ', this.state), this.bar);
  }

  /** Sends the file; `limits` are the server's. */
  async send({ extensions, max_bytes: most }, signal) {
    const fault = refusal(this.name, this.file, extensions, most);
    if (fault) return this.fail(fault);
    this.#progress(0);
    try {
      const { outcome, passages } = await api.addDocument(this.name, this.file, (part) => this.#progress(part), signal);
      this.#end(outcome, `${capital(OUTCOMES[outcome])}, ${passages === 1 ? '1 passage' : `${passages} passages`}`);
    } catch (error) {
      this.fail(signal.aborted ? 'Stopped' : error.message);
    }
  }

  /** Says why it was not added. */
  fail(reason) {
    this.#end('failed', capital(reason));
  }

  #progress(part) {
    this.mark.replaceChildren(el('span', { class: 'spinner' }));
    this.state.textContent = part < 1 ? `${Math.floor(part * 100)} %` : 'Reading';
    if (part < 1) this.bar.value = part;
    else this.bar.removeAttribute('value');
  }

  #end(outcome, text) {
    this.outcome = outcome;
    this.element.dataset.outcome = outcome;
    this.mark.replaceChildren(icon(outcome === 'failed' ? 'failed' : 'done'));
    this.state.textContent = text;
    this.bar.remove();
  }
}

/** Whether the name says that a file can be read. */
export function isReadable(name, extensions) {
  return extensions.includes(/[^/]\.([^./]+)$/.exec(name)?.[1].toLowerCase());
}

// The server would say so as well, after it had got all of it.
function refusal(name, file, extensions, most) {
  if (!isReadable(name, extensions)) return `Files of this kind cannot be read. These can: ${extensions.map((end) => `.${end}`).join(', ')}`;
  if (file === null) return 'The browser cannot open it';
  if (file.size > most) return `It is larger than ${Math.floor(most / 1024 / 1024)} MiB; split it`;
  return null;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
