// The whole page.

import { useEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { startNew } from '../state/chats.js';
import { busy, chats, chatsOpen, dialog, failure, said, toolsOpen } from '../state/store.js';
import { stop } from '../state/turn.js';
import { ChatPanel } from './chats.js';
import { Composer } from './composer.js';
import { DropOverlay } from './drop.js';
import { isElsewhere } from './focus.js';
import { focusQuestion, Header } from './header.js';
import { KeyDialog } from './key.js';
import { later } from './later.js';
import { Log } from './log.js';
import { Notices } from './notices.js';
import { PassageDialog } from './sources.js';
import { closeTools, ToolPanel } from './tools.js';

const Documents = later(async () => (await import('../dialogs/documents.js')).Documents);
const Inbox = later(async () => (await import('../dialogs/inbox.js')).Inbox);
const SettingsDialog = later(async () => (await import('../dialogs/settings.js')).SettingsDialog);

/** On narrower screens the panels lie over the chat. */
const wide = matchMedia('(min-width: 68rem)');

export function App() {
  const [covers, setCovers] = useState(!wide.matches);
  useEffect(() => {
    const place = () => {
      setCovers(!wide.matches);
      if (!wide.matches) chatsOpen.value = toolsOpen.value = false;
    };
    place();
    wide.addEventListener('change', place);
    document.addEventListener('keydown', onKey);
    return () => {
      wide.removeEventListener('change', place);
      document.removeEventListener('keydown', onKey);
    };
  }, []);
  const failed = failure.value;
  useEffect(() => {
    if (!failed) return undefined;
    const timer = setTimeout(() => { failure.value = ''; }, 8000);
    return () => clearTimeout(timer);
  }, [failed]);
  const left = chats.value !== null && chatsOpen.value;
  const covered = covers && (left || toolsOpen.value);
  const uncover = () => { chatsOpen.value = toolsOpen.value = false; };
  return html`
    <${ChatPanel} covers=${covers} />
    <div id="app" inert=${covered}>
      <${Header} /><${Notices} /><${Log} /><${Composer} />
    </div>
    <${ToolPanel} covers=${covers} />
    ${covered && html`<div id="backdrop" onClick=${uncover}></div>`}
    ${dialog.value === 'documents' && html`<${Documents} />`}
    ${dialog.value === 'settings' && html`<${SettingsDialog} />`}
    ${dialog.value === 'inbox' && html`<${Inbox} />`}
    <${PassageDialog} />
    <${KeyDialog} />
    <${DropOverlay} />
    ${failed && html`<p id="failure" role="alert">${failed}</p>`}
    <p id="announce" class="unseen" role="status">${said}</p>`;
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.isComposing) return;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    if (chats.value === null) return;
    chatsOpen.value = true;
    // It is drawn by then, and no key is lost.
    queueMicrotask(() => document.getElementById('chats-search')?.focus());
  } else if (command && event.shiftKey && event.key.toLowerCase() === 'o') {
    event.preventDefault();
    startNew().then(focusQuestion);
  } else if (event.key === 'Escape' && !document.querySelector('dialog[open]')) {
    // A dialog closes itself.
    if (!wide.matches && toolsOpen.value) closeTools();
    else if (!wide.matches && chatsOpen.value && chats.value !== null) {
      chatsOpen.value = false;
      document.getElementById('chats-toggle')?.focus();
    } else if (busy.value && !isElsewhere(event.target)) stop();
  }
}
