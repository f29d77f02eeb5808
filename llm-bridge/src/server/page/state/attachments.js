// What goes into the next message besides its text: pictures as they are, texts as text. What is too long for that, or no text, becomes a
// document of the chat, where the server can read it as one.

import { file as bytesOf, Refused } from './api.js';
import { addToChat } from './chatdocuments.js';
import { cannotBeRead, isReadable, known } from './documents.js';
import { draft } from './draft.js';
import { t } from './language.js';
import { isPlain, isText } from './picked.js';
import { chat, chats } from './store.js';

/** @import { Attachment, Chat, FilePart, Library, Message, Picked } from './types.d.ts' */
/** @import { DraftSignal } from './draft.js' */
/** @import { Content } from './turn.js' */

/** The largest picture, and all of them together, in bytes: base64 makes a third more of it, and a message may have 24 MiB. */
const PICTURES = 16 * 1024 * 1024;
/** The largest text, in characters. */
const TEXT = 200_000;
/** What a model can see. */
const PICTURE = /^image\/(?:png|jpeg|gif|webp)$/;

/**
 * Attaches files to the next message of the chat that is shown now.
 * @param {Picked[]} files
 */
export async function attach(files) {
  forgetRefused();
  const [of, to] = [chat.value, draft.value];
  for (const { name, file } of files) {
    const fault = file ? await add(to, name, file) : t.cannotOpen;
    if (!fault) continue;
    const { why, shares } = file && !PICTURE.test(file.type) ? await asDocument(of, name, file, fault) : { why: fault, shares: false };
    if (!why) continue;
    const { refused } = to.value;
    to.value = { ...to.value, fault: `${name}: ${why}`, refused: shares ? [...refused, { name, file }] : refused };
  }
}

/**
 * Makes a file a document of the chat. Says why not, and whether sharing it with everybody is the way that is left.
 * @param {Chat} of
 * @param {string} name
 * @param {File} file
 * @param {string} fault why it does not go into a message
 */
async function asDocument(of, name, file, fault) {
  const limits = await known();
  const why = limits === null ? fault : await refusal(name, file, limits);
  if (why) return { why, shares: false };
  if (chats.value === null) return { why: fault, shares: true };
  try {
    await addToChat(of, name, file);
    return { why: '', shares: false };
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    return { why: message, shares: error instanceof Refused && error.type === 'chat_documents_disabled' };
  }
}

/**
 * Why the server takes no such document, or nothing. It would say so as well, after it had got all of it.
 * @param {string} name
 * @param {File} file
 * @param {Library} limits
 */
async function refusal(name, file, { may_add: may, extensions, max_bytes: most }) {
  if (!may) return t.mayNotAdd;
  if (file.size > most) return t.tooLarge(Math.floor(most / 1024 / 1024));
  // A text may have any name.
  return isReadable(name, extensions) || (await isPlain(file)) ? '' : cannotBeRead(extensions);
}

/** Says no longer what was not attached. */
export function forgetRefused() {
  draft.value.value = { ...draft.value.value, fault: '', refused: [] };
}

/**
 * @param {DraftSignal} to
 * @param {string} name
 * @param {File} file
 */
async function add(to, name, file) {
  const put = (/** @type {Partial<Attachment>} */ about) => {
    to.value = { ...to.value, files: [...to.value.files, { name, type: file.type, size: file.size, data: '', ...about }] };
    return '';
  };
  if (PICTURE.test(file.type)) {
    const full = () => to.value.files.reduce((sum, other) => sum + (other.text === undefined ? other.size : 0), file.size) > PICTURES;
    if (full()) return t.tooLarge(16);
    const data = await dataUrl(file);
    // Others may be attached meanwhile.
    return full() ? t.tooLarge(16) : put({ data });
  }
  if (!isText(name, file)) return t.notForChat;
  if (file.size > TEXT) return t.textTooLong(TEXT);
  return put({ type: 'text/plain', text: await file.text() });
}

/** @param {Attachment} attachment */
export function detach(attachment) {
  const { files } = draft.value.value;
  draft.value.value = { ...draft.value.value, files: files.filter((other) => other !== attachment) };
}

/** Nothing is attached any more. */
export function forgetAttachments() {
  draft.value.value = { ...draft.value.value, files: [], fault: '', refused: [] };
}

/**
 * The message with all that is attached.
 * @param {string} text
 * @returns {Content}
 */
export function withAttachments(text) {
  const all = draft.value.value.files;
  const texts = all.filter((one) => one.text !== undefined).map((one) => `${one.name}:\n${fenced(one.text ?? '')}`);
  const whole = [text, ...texts].filter(Boolean).join('\n\n');
  const pictures = all.filter((one) => one.text === undefined);
  if (pictures.length === 0) return whole;
  return [{ type: 'text', text: whole }, ...pictures.map(({ data }) => ({ type: 'image_url', image_url: { url: data } }))];
}

/**
 * The pictures of a message.
 * @param {Message} message
 * @returns {FilePart[]}
 */
export const picturesOf = ({ parts }) => parts.flatMap((part) => (part.type === 'image' ? [part] : []));

/**
 * A text with pictures of a message.
 * @param {FilePart[]} pictures
 * @param {string} text
 * @returns {Promise<Content>}
 */
export async function withPictures(pictures, text) {
  if (pictures.length === 0) return text;
  const urls = await Promise.all(pictures.map(async ({ url, path }) => url ?? dataUrl(await bytesOf(path ?? ''))));
  return [{ type: 'text', text }, ...urls.map((url) => ({ type: 'image_url', image_url: { url } }))];
}

/**
 * A text in a fence that nothing in it closes.
 * @param {string} text
 */
function fenced(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}

/**
 * @param {Blob} file
 * @returns {Promise<string>}
 */
function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result)));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}
