// What goes into the next message besides its text: pictures as they are, texts as text. What is too long for that, or no text, becomes a
// document of the chat, where it can be read as one.

import { signal } from '../vendor/signals.js';
import { file as bytesOf } from './api.js';
import { addToChat, isDocument } from './chatdocuments.js';
import { t } from './language.js';
import { isText } from './picked.js';

/** @import { Attachment, Message, Picked } from './types.d.ts' */
/** @import { Content } from './turn.js' */

/** The largest picture, and all of them together, in bytes: base64 makes a third more of it, and a message may have 24 MiB. */
const PICTURES = 16 * 1024 * 1024;
/** The largest text, in characters. */
const TEXT = 200_000;

/** What is attached to the next message. */
export const attachments = signal(/** @type {Attachment[]} */ ([]));
/** Why something was not attached. */
export const attachmentFault = signal('');
/** What does not go into a chat, and may be shared as documents instead. */
export const refused = signal(/** @type {Picked[]} */ ([]));

/**
 * Attaches files.
 * @param {Picked[]} files
 */
export async function attach(files) {
  forgetRefused();
  for (const { name, file } of files) {
    const fault = file ? await add(name, file) : t.cannotOpen;
    if (!fault) continue;
    const why = file && isDocument(name) ? await addToChat(name, file) : fault;
    if (!why) continue;
    attachmentFault.value = `${name}: ${why}`;
    if (file && !file.type.startsWith('image/')) refused.value = [...refused.value, { name, file }];
  }
}

/** Says no longer what was not attached. */
export function forgetRefused() {
  attachmentFault.value = '';
  refused.value = [];
}

/**
 * @param {string} name
 * @param {File} file
 */
async function add(name, file) {
  const all = attachments.value;
  if (/^image\/(?:png|jpeg|gif|webp)$/.test(file.type)) {
    if (all.reduce((sum, other) => sum + (other.text === undefined ? other.size : 0), file.size) > PICTURES) return t.tooLarge(16);
    attachments.value = [...all, { name, type: file.type, size: file.size, data: await dataUrl(file) }];
    return '';
  }
  if (!isText(name, file)) return t.notForChat;
  if (file.size > TEXT) return t.textTooLong(TEXT);
  attachments.value = [...all, { name, type: 'text/plain', size: file.size, data: '', text: await file.text() }];
  return '';
}

/** @param {Attachment} attachment */
export function detach(attachment) {
  attachments.value = attachments.value.filter((other) => other !== attachment);
}

/**
 * The message with all that is attached, which then no longer is.
 * @param {string} text
 * @returns {Content}
 */
export function withAttachments(text) {
  const all = attachments.value;
  attachments.value = [];
  forgetRefused();
  const texts = all.filter((one) => one.text !== undefined).map((one) => `${one.name}:\n${fenced(one.text ?? '')}`);
  const whole = [text, ...texts].filter(Boolean).join('\n\n');
  const pictures = all.filter((one) => one.text === undefined);
  if (pictures.length === 0) return whole;
  return [{ type: 'text', text: whole }, ...pictures.map(({ data }) => ({ type: 'image_url', image_url: { url: data } }))];
}

/**
 * Another text with the pictures of a message.
 * @param {Message} message
 * @param {string} text
 * @returns {Promise<Content>}
 */
export async function withPictures(message, text) {
  const pictures = message.parts.flatMap((part) => (part.type === 'image' ? [part] : []));
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
