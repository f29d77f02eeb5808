// The chats of this person: a column on wide screens, a drawer on narrow ones.

import { useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { change, exported, open, remove, startNew } from '../state/chats.js';
import { t } from '../state/language.js';
import { list, listMore } from '../state/list.js';
import { chat, chats, chatsKnown, chatsOpen, moreChats } from '../state/store.js';
import { moment } from '../text/format.js';
import { onEscape, useFocus, useFocusBack } from './focus.js';
import { focusQuestion } from './header.js';
import { Icon } from './icon.js';

/** @import { Listed } from '../state/types.d.ts' */

const SOON = 200;

/** @param {{ covers: boolean }} properties whether it lies over the chat */
export function ChatPanel({ covers }) {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const [words, setWords] = useState('');
  const search = (/** @type {any} */ event) => {
    const { value } = event.target;
    setWords(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => list(value.trim()), SOON);
  };
  if (chats.value === null) return null;
  const openChat = chatsOpen.value;
  const done = () => { if (covers) chatsOpen.value = false; };
  return html`<nav id="chats" aria-label=${t.chats} hidden=${!openChat} inert=${!openChat}>
    <div class="chats-head">
      <button id=${openChat ? 'new-chat' : undefined} type="button" class="chats-new" onClick=${async () => { await startNew(); done(); focusQuestion(); }}><${Icon} name="plus" /><span>${t.newChat}</span></button>
      <label class="search-field"><span class="unseen">${t.searchChats}</span><${Icon} name="search" />
        <input id="chats-search" type="search" maxlength="250" placeholder=${t.searchChats} title=${t.keySearch} autocomplete="off" spellcheck="false" value=${words} onInput=${search} /></label>
    </div>
    <ul id="chats-list">
      ${chats.value.map((listed) => html`<${Row} key=${listed.id} listed=${listed} onOpen=${done} />`)}
    </ul>
    ${chatsKnown.value && chats.value.length === 0 && html`<p class="empty">${words ? t.noChatFound : t.noChats}</p>`}
    ${moreChats.value && html`<button type="button" class="quiet more-chats" onClick=${listMore}>${t.moreChats}</button>`}
  </nav>`;
}

/** @param {{ listed: Listed, onOpen: () => void }} properties */
function Row({ listed, onOpen }) {
  const [state, setState] = useState(/** @type {'' | 'menu' | 'rename' | 'delete'} */ (''));
  const { id, title, pinned, running, updated_at: updated, found } = listed;
  const shown = chat.value.id === id;
  const more = useFocusBack(state !== '');
  const close = () => setState('');
  if (state === 'rename') return html`<${Rename} listed=${listed} onClose=${close} />`;
  if (state === 'delete') return html`<${Deletion} listed=${listed} onClose=${close} />`;
  return html`<li class=${`chat-row${shown ? ' shown' : ''}`} onKeyDown=${state === 'menu' ? onEscape(close) : undefined}>
    <a href=${`#${id}`} aria-current=${shown ? 'page' : undefined} onClick=${(/** @type {Event} */ event) => { event.preventDefault(); history.pushState(null, '', `#${id}`); open(id, found?.message); onOpen(); }}>
      <span class="chat-title">${pinned && html`<${Icon} name="pin" />`}${title || t.untitled}</span>
      ${found ? html`<span class="chat-found">${found.text}</span>` : html`<span class="chat-time">${running ? t.chatRuns : moment(updated)}</span>`}
    </a>
    ${running && html`<span class="spinner" title=${t.chatRuns}></span>`}
    <button type="button" class="quiet chat-more" aria-label=${t.moreFor(title || t.untitled)} aria-expanded=${String(state === 'menu')} ref=${more} onClick=${() => setState(state === 'menu' ? '' : 'menu')}><${Icon} name="more" /></button>
    ${state === 'menu' && html`<div class="menu">
      <button type="button" onClick=${() => setState('rename')}><${Icon} name="edit" />${t.rename}</button>
      <button type="button" onClick=${() => { close(); change(listed, { pinned: !pinned }); }}><${Icon} name="pin" />${pinned ? t.unpin : t.pin}</button>
      <button type="button" onClick=${() => { close(); exported(listed, 'markdown'); }}><${Icon} name="save" />${t.exportMarkdown}</button>
      <button type="button" onClick=${() => { close(); exported(listed, 'json'); }}><${Icon} name="save" />${t.exportJson}</button>
      <button type="button" class="danger" onClick=${() => setState('delete')}><${Icon} name="trash" />${t.delete}</button>
    </div>`}
  </li>`;
}

/**
 * A new title, which holds also when something else is clicked.
 * @param {{ listed: Listed, onClose: () => void }} properties
 */
function Rename({ listed, onClose }) {
  const field = useFocus();
  // What is closed has no field to leave any more.
  const closed = useRef(false);
  const close = () => {
    closed.current = true;
    onClose();
  };
  const keep = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (closed.current) return;
    const title = field.current.value.trim();
    close();
    if (title && title !== listed.title) change(listed, { title });
  };
  // By then the focus is where one has clicked, and stays there.
  const onBlur = (/** @type {Event} */ event) => setTimeout(() => keep(event));
  return html`<li class="chat-row"><form onSubmit=${keep} onKeyDown=${onEscape(close)}>
    <input name="title" aria-label=${t.title} defaultValue=${listed.title} maxlength="200" ref=${field} onBlur=${onBlur} /></form></li>`;
}

/** @param {{ listed: Listed, onClose: () => void }} properties */
function Deletion({ listed, onClose }) {
  const keep = useFocus();
  return html`<li class="chat-row chat-delete" onKeyDown=${onEscape(onClose)}><p>${t.deleteForGood(listed.title || t.untitled)}</p><div>
    <button type="button" class="danger" onClick=${() => { onClose(); remove(listed).then(focusQuestion); }}>${t.delete}</button>
    <button type="button" onClick=${onClose} ref=${keep}>${t.keep}</button></div></li>`;
}
