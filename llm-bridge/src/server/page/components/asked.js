// A message of the person, which can be edited: the edited one stands beside it.

import { useLayoutEffect, useRef, useState } from '../vendor/hooks.js';
import { signal } from '../vendor/signals.js';
import { html } from '../state/html.js';
import { picturesOf, withPictures } from '../state/attachments.js';
import { t } from '../state/language.js';
import { removeMessage } from '../state/chats.js';
import { textOf } from '../state/answer.js';
import { busy, changes, failure, sought } from '../state/store.js';
import { edit } from '../state/turn.js';
import { Branches } from './branches.js';
import { CopyButton } from './copy.js';
import { focusQuestion } from './header.js';
import { Icon } from './icon.js';
import { FileView } from './parts.js';
import { Sure } from './sure.js';

/** @import { FilePart, Message } from '../state/types.d.ts' */

/** The id of the message that is edited: the chat may be read again meanwhile. */
export const edited = signal(/** @type {string | null} */ (null));

/** Of a longer text the beginning is shown, in characters and in lines. */
const [LONG, MANY] = [4000, 40];

/** @param {{ message: Message, past: boolean }} properties */
export function Asked({ message, past }) {
  void changes(message).value;
  const [open, setOpen] = useState(/** @type {boolean | null} */ (null));
  if (edited.value === message.id) return html`<${Editor} message=${message} />`;
  const files = message.parts.filter((part) => part.type !== 'text' && part.type !== 'call' && part.type !== 'reasoning' && part.type !== 'notice');
  const text = textOf(message);
  const start = text.split('\n', MANY).join('\n').slice(0, LONG);
  // What a search has found may be behind it.
  const whole = start === text || (open ?? sought.value?.message === message.id);
  return html`<div class=${past ? 'question past' : 'question'} data-id=${message.id}>
    ${files.length > 0 && html`<div class="asked-files">${files.map((part, index) => html`<${FileView} key=${index} part=${part} />`)}</div>`}
    <article class="asked" aria-label=${t.you}>${whole ? text : `${start} …`}</article>
    ${start !== text && html`<button type="button" class="quiet unfold" aria-expanded=${String(whole)} onClick=${() => setOpen(!whole)}>${whole ? t.showLess : t.showAll}</button>`}
    <div class="actions">
      <${Branches} message=${message} />
      <${CopyButton} text=${() => text} />
      <button type="button" class="quiet edit" disabled=${busy} onClick=${() => { edited.value = message.id; }}><${Icon} name="edit" /><span>${t.edit}</span></button>
      <${Sure} word=${t.delete} icon="trash" quiet title=${t.deleteFollowing} question=${t.deleteFollowingAsk} no=${t.keep} disabled=${busy} onSure=${() => removeMessage(message.id)} />
    </div>
  </div>`;
}

/** @param {{ message: Message }} properties */
function Editor({ message }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [pictures, setPictures] = useState(() => picturesOf(message));
  useLayoutEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = `${area.scrollHeight}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }, []);
  const close = () => {
    edited.value = null;
    focusQuestion();
  };
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value.trim();
    if (!text) return;
    withPictures(pictures, text).then((content) => { if (edit(message, content)) close(); }, (error) => { failure.value = error.message; });
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      close();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
  };
  const leaveOut = (/** @type {FilePart} */ picture) => {
    setPictures(pictures.filter((other) => other !== picture));
    field.current?.focus();
  };
  return html`<form class="editor" onSubmit=${send}>
    ${pictures.length > 0 && html`<ul class="asked-files">${pictures.map((picture) => html`<li key=${picture.path ?? picture.url}><${FileView} part=${picture} />
      <button type="button" class="quiet leave-out" aria-label=${t.removeWhat(picture.name ?? t.picture)} onClick=${() => leaveOut(picture)}><${Icon} name="close" /></button></li>`)}</ul>`}
    <label><span class="unseen">${t.editMessage}</span><textarea ref=${field} defaultValue=${textOf(message)} onKeyDown=${onKey}></textarea></label>
    <div class="buttons"><button type="button" onClick=${close}>${t.cancel}</button><button type="submit" class="main">${t.send}</button></div>
  </form>`;
}
