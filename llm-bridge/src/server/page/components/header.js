// The head of the page: chats, the model, what waits, tools.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { chooseModel, startNew } from '../state/chats.js';
import { endSession } from '../state/server.js';
import { account, chat, chats, chatsOpen, dialog, model, models, session, tools, toolsFailure, toolsOpen, waiting } from '../state/store.js';
import { remember } from '../state/storage.js';
import { Icon } from './icon.js';

export function Header() {
  return html`<header>
    ${chats.value !== null && html`<button id="chats-toggle" class="quiet" type="button" aria-expanded=${String(chatsOpen.value)} aria-controls="chats" title=${t.chats}
      onClick=${() => { chatsOpen.value = !chatsOpen.value; remember('chats-open', chatsOpen.value); }}>
      <${Icon} name="chats" /><span class="unseen">${t.chats}</span>
    </button>`}
    <a class="brand" href="./" aria-label="Toolrack"><img src="icon.svg" alt="" width="26" height="26" /><span>Toolrack</span></a>
    <${Models} />
    <span class="gap"></span>
    ${waiting.value.length > 0 && html`<button id="inbox-open" class="quiet attention" type="button" aria-haspopup="dialog" onClick=${() => { dialog.value = 'inbox'; }}>
      <${Icon} name="bell" /><span class="wide-only">${t.waiting}</span><span class="unseen narrow-only">${t.waiting}</span><span class="count">${waiting.value.length}</span>
    </button>`}
    ${(chats.value === null || !chatsOpen.value) && html`<button id="new-chat" class="quiet" type="button" title=${`${t.newChat} (${t.keyNewChat})`} disabled=${chat.value.messages.length === 0}
      onClick=${async () => { await startNew(); focusQuestion(); }}>
      <${Icon} name="plus" /><span class="wide-only">${t.newChat}</span><span class="unseen narrow-only">${t.newChat}</span>
    </button>`}
    ${account.value && !account.value.configured && html`<span id="who" class="wide-only">${account.value.user}</span>`}
    ${session.value && html`<button id="sign-out" class="quiet" type="button" title=${`${t.signedInAs} ${session.value.user}`} onClick=${endSession}>${t.endSession}</button>`}
    <button id="settings-open" class="quiet" type="button" aria-haspopup="dialog" title=${t.settings} onClick=${() => { dialog.value = 'settings'; }}>
      <${Icon} name="settings" /><span class="unseen">${t.settings}</span>
    </button>
    <${ToolsToggle} />
  </header>`;
}

function Models() {
  const names = models.value;
  if (names.length === 0) return null;
  if (names.length === 1) return html`<span id="model-name">${names[0]}</span>`;
  return html`<label id="model-field"><span class="unseen">${t.model}</span>
    <select id="model" value=${model.value} onChange=${(/** @type {any} */ event) => chooseModel(event.target.value)}>${names.map((name) => html`<option value=${name} selected=${name === model.value}>${name}</option>`)}</select>
  </label>`;
}

function ToolsToggle() {
  const on = tools.value.filter((tool) => tool.enabled).length;
  return html`<button id="tools-toggle" class="quiet" type="button" aria-expanded=${String(toolsOpen.value)} aria-controls="tools" title=${t.tools}
    onClick=${() => { toolsOpen.value = !toolsOpen.value; }}>
    <${Icon} name="tools" /><span class="wide-only">${t.tools}</span><span class="unseen narrow-only">${t.tools}</span>
    ${!toolsFailure.value && tools.value.length > 0 && html`<span id="tools-count" class="count">${on}</span>`}
  </button>`;
}

/** On a phone, focus would bring up the keyboard over the answer. */
export function focusQuestion() {
  if (!matchMedia('(pointer: coarse)').matches) document.getElementById('question')?.focus();
}
