// The documents that tools search: listed, added one after the other, removed.

import { batch, signal } from '../vendor/signals.js';
import * as api from './api.js';
import { t } from './language.js';
import { loadTools } from './server.js';

/** @import { Library, Picked } from './types.d.ts' */
/** @typedef {{ name: string, file: File | null, state: string, outcome: string, part: number | null }} Transfer */

/** What there is, and why it cannot be seen. */
export const library = signal(/** @type {Library | null} */ (null));
export const libraryFailure = signal('');
/** What was dropped, and is shared once the person says so. */
export const offered = signal(/** @type {Picked[]} */ ([]));
/** The folder that they are added to: the user's own, where it is empty. */
export const into = signal('');
/** The files that are added. */
export const transfers = signal(/** @type {Transfer[]} */ ([]));
/** How that went. */
export const status = signal('');
/** What stops it, while it goes on. */
export const sending = signal(/** @type {AbortController | null} */ (null));

let leftOut = 0;
/** How often what there is was asked for. */
let asked = 0;

/** What there is by now; null where it cannot be read. What is asked for last is shown, whichever comes last. */
export async function loadLibrary() {
  const number = asked += 1;
  /** @type {Library | null} */
  let known = null;
  let failure = '';
  try {
    known = await api.documents();
  } catch (error) {
    failure = /** @type {Error} */ (error).message;
  }
  if (number === asked) {
    batch(() => {
      library.value = known ?? library.value;
      libraryFailure.value = failure;
    });
  }
  return known;
}

/** What the server takes, asked once; null where it says nothing. */
export const known = async () => library.value ?? loadLibrary();

/** Forgets what was added before. */
export function forget() {
  if (sending.value) return;
  batch(() => {
    transfers.value = [];
    offered.value = [];
    status.value = '';
  });
  leftOut = 0;
}

/** What there is, for who may add to it; else it is said why not. */
async function mayAdd() {
  const known = await loadLibrary();
  if (known && !known.may_add) status.value = t.mayNotAdd;
  return known?.may_add ? known : null;
}

/**
 * Asks whether files are to be shared with everybody: where one drops them is soon missed.
 * @param {Promise<Picked[]>} given
 */
export async function offer(given) {
  const [files, known] = await Promise.all([given, mayAdd()]);
  if (known) offered.value = [...offered.value, ...files];
}

/** Adds what was offered. */
export function share() {
  const files = offered.value;
  offered.value = [];
  return add(files);
}

/**
 * Adds files.
 * @param {Picked[]} files
 */
export async function add(files) {
  const known = await mayAdd();
  if (!known) return;
  forget();
  const below = into.value.split('/').map((part) => part.trim()).filter(Boolean);
  const wanted = files.filter(({ name }) => isWanted(name, known.extensions));
  leftOut += files.length - wanted.length;
  transfers.value = [...transfers.value, ...wanted.map(({ name, file }) => ({ name: [...below, name].join('/'), file, state: t.transferWaits, outcome: '', part: 0 }))];
  status.value = t.adding(transfers.value.length);
  if (!sending.value) await send(known);
}

/** @param {Library} limits */
async function send(limits) {
  const controller = new AbortController();
  sending.value = controller;
  // Others may be dropped meanwhile.
  for (let next = 0; next < transfers.value.length; next += 1) await sendOne(next, limits, controller.signal);
  sending.value = null;
  const [before, done] = [status.value, summary()];
  await Promise.all([loadLibrary(), loadTools()]);
  // When it can be seen, and while nothing else goes on.
  if (!sending.value && status.value === before) status.value = done;
}

/**
 * @param {number} index
 * @param {Library} limits
 * @param {AbortSignal} signal
 */
async function sendOne(index, limits, signal) {
  const update = (/** @type {Partial<Transfer>} */ change) => {
    transfers.value = transfers.value.map((other, at) => (at === index ? { ...other, ...change } : other));
  };
  const fail = (/** @type {string} */ reason) => update({ outcome: 'failed', state: capital(reason), part: null });
  const { name, file } = transfers.value[index] ?? { name: '', file: null };
  if (signal.aborted) return fail(t.transferStopped);
  const fault = refusal(name, file, limits);
  if (fault || !file) return fail(fault ?? '');
  const progress = (/** @type {number} */ part) => update({ part, outcome: 'sending', state: part < 1 ? `${Math.floor(part * 100)} %` : t.reading });
  progress(0);
  try {
    const { outcome, passages } = await api.addDocument(name, file, progress, signal);
    update({ outcome, part: null, state: `${capital(t.outcomes[/** @type {keyof typeof t.outcomes} */ (outcome)] ?? outcome)}, ${t.passages(passages)}` });
  } catch (error) {
    fail(signal.aborted ? t.transferStopped : /** @type {Error} */ (error).message);
  }
}

function summary() {
  const counted = Object.entries(t.outcomes).flatMap(([outcome, word]) => {
    const found = transfers.value.filter((one) => one.outcome === outcome).length;
    return found > 0 ? [`${found} ${word}`] : [];
  });
  if (leftOut > 0) counted.push(t.leftOut(leftOut));
  return `${counted.join(', ') || t.nothingToAdd}.`;
}

/**
 * Removes a document, or all in a folder.
 * @param {string} path
 * @param {string} what
 */
export async function remove(path, what) {
  const done = await api.removeDocuments(path).then(() => t.removed(what), (error) => error.message);
  await Promise.all([loadLibrary(), loadTools()]);
  status.value = done;
}

/**
 * Of a folder what can be read is taken; what is named itself is refused in words.
 * @param {string} name
 * @param {string[]} extensions
 */
function isWanted(name, extensions) {
  const inFolder = name.includes('/');
  return !inFolder || (isReadable(name, extensions) && !name.split('/').some((part) => part.startsWith('.')));
}

/**
 * @param {string} name
 * @param {string[]} extensions
 */
export function isReadable(name, extensions) {
  return extensions.includes(/[^/]\.([^./]+)$/.exec(name)?.[1]?.toLowerCase() ?? '');
}

/**
 * The server would say so as well, after it had got all of it.
 * @param {string} name
 * @param {File | null} file
 * @param {Library} limits
 */
function refusal(name, file, { extensions, max_bytes: most }) {
  if (!isReadable(name, extensions)) return cannotBeRead(extensions);
  if (file === null) return t.cannotOpen;
  if (file.size > most) return t.tooLarge(Math.floor(most / 1024 / 1024));
  return null;
}

/** @param {string[]} extensions */
export const cannotBeRead = (extensions) => t.kindCannotBeRead(extensions.map((end) => `.${end}`).join(', '));

/** @param {string} text */
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
