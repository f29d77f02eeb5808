// Where the person writes. What is not sent is kept, for each chat.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';
import { useSignal } from '../vendor/signals.js';
import { html } from '../state/html.js';
import { attach, detach, forgetAttachments, forgetRefused, withAttachments } from '../state/attachments.js';
import { chatDocuments, removeFromChat } from '../state/chatdocuments.js';
import { add } from '../state/documents.js';
import { cameBack, draft, enqueue, unqueue, write, written } from '../state/draft.js';
import { t } from '../state/language.js';
import { chosen } from '../state/picked.js';
import { busy, chat, dialog, isBlind, model, said, shown, sought } from '../state/store.js';
import { ask, follows, stop } from '../state/turn.js';
import { edited } from './asked.js';
import { isElsewhere } from './focus.js';
import { Icon } from './icon.js';
import { toEnd, ToEnd } from './log.js';
import { oneLine, size } from '../text/format.js';

const touch = matchMedia('(pointer: coarse)');

/** The field with what is written for the chat that is shown. */
function useWritten() {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const empty = useSignal(true);
  const { id, begun } = chat.value;
  const fit = () => {
    const area = field.current;
    if (!area) return;
    empty.value = area.value.trim() === '';
    // `field-sizing: content` does it without this where browsers have it.
    if (CSS.supports('field-sizing', 'content')) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  };
  // Before the next key: what is typed after a change of chats would be kept for both otherwise.
  useLayoutEffect(() => {
    if (!field.current) return;
    field.current.value = written(id);
    fit();
    // On a phone, focus would bring up the keyboard. What a search has found has it already, and who writes elsewhere goes on there.
    if (!touch.matches && !sought.value && !isElsewhere(document.activeElement)) field.current.focus();
  }, [begun ?? id, cameBack.value]);
  const input = () => {
    fit();
    write(id, field.current?.value ?? '');
  };
  return { field, empty: empty.value, input };
}

export function Composer() {
  const { field, empty, input } = useWritten();
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const { files } = draft.value.value;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? '';
    if (!field.current || (!text && files.length === 0)) return;
    const content = withAttachments(text);
    if (follows()) {
      enqueue({ text, files, content });
      said.value = t.sentWhenComplete;
    } else if (busy.value || !ask(content)) return;
    forgetAttachments();
    field.current.value = '';
    input();
    toEnd();
    if (!touch.matches) field.current.focus();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    // While a word is composed, keys belong to the input method.
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) submit(event);
    else if (event.key === 'ArrowUp' && field.current?.value === '' && !busy.value) {
      const last = shown.value.findLast((message) => message.role === 'user');
      if (!last) return;
      event.preventDefault();
      edited.value = last.id;
    }
  };
  const paste = (/** @type {ClipboardEvent} */ event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length === 0) return;
    event.preventDefault();
    attach(pasted.map((file) => ({ name: file.name, file })));
  };
  return html`<footer>
    <${ToEnd} />
    <form id="composer" class="column" onSubmit=${submit}>
      <${Queue} /><${ChatDocuments} /><${Attached} />
      <label class="unseen" for="question">${t.message}</label>
      <textarea id="question" rows="1" placeholder=${t.askSomething} enterkeyhint="send" autocomplete="off" ref=${field} onInput=${input} onKeyDown=${onKey} onPaste=${paste}></textarea>
      <button id="attach" class="quiet" type="button" aria-label=${t.attach} title=${t.attach} onClick=${() => picker.current?.click()}><${Icon} name="attach" /></button>
      <input type="file" multiple hidden ref=${picker} onChange=${(/** @type {any} */ event) => attach(chosen(event.target))} />
      <${Buttons} empty=${empty && files.length === 0} />
    </form>
    <${Hint} />
  </footer>`;
}

/** What is sent when the answer is complete. */
function Queue() {
  const { queue } = draft.value.value;
  if (queue.length === 0) return null;
  return html`<div class="attached"><ul id="queue" aria-label=${t.sentWhenComplete}>${queue.map((one, index) => html`<li key=${index} title=${t.sentWhenComplete}>
    <${Icon} name="clock" /><span class="part-name">${oneLine(one.text, 120) || one.files.map(({ name }) => name).join(', ')}</span>
    <button type="button" class="quiet" aria-label=${t.doNotSend(oneLine(one.text, 40))} onClick=${() => unqueue([one])}><${Icon} name="close" /></button>
  </li>`)}</ul><p>${t.sentWhenComplete}</p></div>`;
}

/** @param {{ empty: boolean }} properties whether there is nothing to send */
function Buttons({ empty }) {
  const runs = busy.value;
  return html`<button id="send" type="submit" aria-label=${t.send} title=${`${t.send} (${t.keySend})`} hidden=${runs} disabled=${empty}><${Icon} name="send" /></button>
    <button id="stop" type="button" aria-label=${t.stop} title=${`${t.stop} (${t.keyStop})`} hidden=${!runs} onClick=${stop}>
      <svg viewBox="0 0 20 20" aria-hidden="true"><rect x="5.5" y="5.5" width="9" height="9" rx="1.5" /></svg>
    </button>`;
}

/** What the keys do. */
function Hint() {
  return html`<p class="hint column"><kbd>${t.keySend}</kbd> ${t.sends}<span>·</span><kbd>${t.keyShift}</kbd> <kbd>${t.keySend}</kbd> ${t.addsLine}<span>·</span><kbd>${t.keyStop}</kbd> ${t.stops}<span>·</span><kbd>↑</kbd> ${t.editsLast}</p>`;
}

/** Sharing with others is a step of its own. */
function share() {
  const files = draft.value.value.refused;
  forgetRefused();
  dialog.value = 'documents';
  add(files);
}

/** The documents of the chat, which stay there for all of its messages. */
function ChatDocuments() {
  if (chatDocuments.value.length === 0) return null;
  return html`<div class="attached"><ul id="chat-documents" aria-label=${t.chatDocuments}>${chatDocuments.value.map(({ name, passages }) => html`<li key=${name} data-ready=${passages !== null} title=${t.chatDocumentsAbout}>
    ${passages === null ? html`<span class="spinner"></span>` : html`<${Icon} name="document" />`}
    <span class="part-name">${name}</span><span>${passages === null ? t.reading : t.passages(passages)}</span>
    ${passages !== null && html`<button type="button" class="quiet" aria-label=${t.removeWhat(name)} onClick=${() => removeFromChat(name)}><${Icon} name="close" /></button>`}
  </li>`)}</ul></div>`;
}

function Attached() {
  const { files, fault, refused } = draft.value.value;
  if (files.length === 0 && !fault) return null;
  return html`<div class="attached">
    ${files.length > 0 && html`<ul aria-label=${t.attached}>${files.map((one) => html`<li key=${one.name + one.size}>
      ${one.data ? html`<img src=${one.data} alt="" />` : html`<${Icon} name="document" />`}
      <span class="part-name">${one.name}</span><span>${size(one.size)}</span>
      <button type="button" class="quiet" aria-label=${t.removeWhat(one.name)} onClick=${() => detach(one)}><${Icon} name="close" /></button>
    </li>`)}</ul>`}
    ${files.some(({ data }) => data) && isBlind.value && html`<p class="blind" role="status">${t.seesNoPictures(model.value)}</p>`}
    ${fault && html`<p class="part-error" role="alert">${fault}
      ${refused.length > 0 && html` <button type="button" class="share" onClick=${share}>${t.shareInstead(refused.length)}</button>`}
      <button type="button" class="quiet" aria-label=${t.close} onClick=${forgetRefused}><${Icon} name="close" /></button></p>`}
  </div>`;
}
