// Where the person writes. What is not sent is kept, for each chat.

import { useEffect, useRef } from '../vendor/hooks.js';
import { useSignal } from '../vendor/signals.js';
import { html } from '../state/html.js';
import { attach, attachmentFault, attachments, detach, forgetRefused, refused, withAttachments } from '../state/attachments.js';
import { chatDocuments, removeFromChat } from '../state/chatdocuments.js';
import { add } from '../state/documents.js';
import { t } from '../state/language.js';
import { chosen } from '../state/picked.js';
import { prefer, preference } from '../state/storage.js';
import { busy, chat, dialog, shown } from '../state/store.js';
import { ask, stop } from '../state/turn.js';
import { edited } from './asked.js';
import { Icon } from './icon.js';
import { toEnd, ToEnd } from './log.js';
import { size } from '../text/format.js';

const touch = matchMedia('(pointer: coarse)');

export function Composer() {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const empty = useSignal(true);
  const { id } = chat.value;
  const draft = `draft.${id ?? 'new'}`;
  const fit = () => {
    const area = field.current;
    if (!area) return;
    empty.value = area.value.trim() === '';
    // `field-sizing: content` does it without this where browsers have it.
    if (CSS.supports('field-sizing', 'content')) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  };
  useEffect(() => {
    if (!field.current) return;
    field.current.value = preference(draft, '');
    fit();
    // On a phone, focus would bring up the keyboard.
    if (!touch.matches) field.current.focus();
  }, [draft]);
  const input = () => {
    fit();
    prefer(draft, field.current?.value || null);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? '';
    if (busy.value || (!text && attachments.value.length === 0) || !field.current) return;
    field.current.value = '';
    input();
    ask(withAttachments(text));
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
      edited.value = last;
    }
  };
  const paste = (/** @type {ClipboardEvent} */ event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    attach(files.map((file) => ({ name: file.name, file })));
  };
  const runs = busy.value;
  return html`<footer>
    <${ToEnd} />
    <form id="composer" class="column" onSubmit=${submit}>
      <${ChatDocuments} /><${Attached} />
      <label class="unseen" for="question">${t.message}</label>
      <textarea id="question" rows="1" placeholder=${t.askSomething} enterkeyhint="send" autocomplete="off" ref=${field} onInput=${input} onKeyDown=${onKey} onPaste=${paste}></textarea>
      <button id="attach" class="quiet" type="button" aria-label=${t.attach} title=${t.attach} onClick=${() => picker.current?.click()}><${Icon} name="attach" /></button>
      <input type="file" multiple hidden ref=${picker} onChange=${(/** @type {any} */ event) => attach(chosen(event.target))} />
      <button id="send" type="submit" aria-label=${t.send} title=${`${t.send} (${t.keySend})`} hidden=${runs} disabled=${empty.value && attachments.value.length === 0}><${Icon} name="send" /></button>
      <button id="stop" type="button" aria-label=${t.stop} title=${`${t.stop} (${t.keyStop})`} hidden=${!runs} onClick=${stop}>
        <svg viewBox="0 0 20 20" aria-hidden="true"><rect x="5.5" y="5.5" width="9" height="9" rx="1.5" /></svg>
      </button>
    </form>
    <p class="hint column"><kbd>${t.keySend}</kbd> ${t.sends}<span>·</span><kbd>${t.keyShift}</kbd> <kbd>${t.keySend}</kbd> ${t.addsLine}<span>·</span><kbd>${t.keyStop}</kbd> ${t.stops}<span>·</span><kbd>↑</kbd> ${t.editsLast}</p>
  </footer>`;
}

/** Sharing with others is a step of its own. */
function share() {
  const files = refused.value;
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
  if (attachments.value.length === 0 && !attachmentFault.value) return null;
  return html`<div class="attached">
    ${attachments.value.length > 0 && html`<ul aria-label=${t.attached}>${attachments.value.map((one) => html`<li key=${one.name + one.size}>
      ${one.data ? html`<img src=${one.data} alt="" />` : html`<${Icon} name="document" />`}
      <span class="part-name">${one.name}</span><span>${size(one.size)}</span>
      <button type="button" class="quiet" aria-label=${t.removeWhat(one.name)} onClick=${() => detach(one)}><${Icon} name="close" /></button>
    </li>`)}</ul>`}
    ${attachmentFault.value && html`<p class="part-error" role="alert">${attachmentFault.value}
      ${refused.value.length > 0 && html` <button type="button" class="share" onClick=${share}>${t.shareInstead(refused.value.length)}</button>`}
      <button type="button" class="quiet" aria-label=${t.close} onClick=${forgetRefused}><${Icon} name="close" /></button></p>`}
  </div>`;
}
