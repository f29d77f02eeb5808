// Files over the page: into this chat, or, as a second and explicit way, to the documents that all users' tools search.

import { useEffect, useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { attach } from '../state/attachments.js';
import { t } from '../state/language.js';
import { dropped } from '../state/picked.js';
import { offer } from '../state/documents.js';
import { dialog } from '../state/store.js';

export function DropOverlay() {
  const overlay = useRef(/** @type {HTMLElement | null} */ (null));
  const [target, setTarget] = useState('chat');
  useEffect(() => {
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes('Files') ?? false;
    // An open dialog lies over all: what is dropped there is for the documents.
    const targetOf = (/** @type {DragEvent} */ event) => {
      if (dialog.value === 'documents') return 'documents';
      const path = event.target instanceof Element ? event.target : null;
      return path?.closest('#drop-documents') ? 'documents' : 'chat';
    };
    const over = (/** @type {DragEvent} */ event) => {
      if (!hasFiles(event) || !event.dataTransfer) return;
      // Else the browser would leave the page and show the file.
      event.preventDefault();
      event.dataTransfer.dropEffect = 'copy';
      setTarget(targetOf(event));
      if (dialog.value !== 'documents') overlay.current?.showPopover();
    };
    const leave = (/** @type {DragEvent} */ event) => {
      // From one element to the next it is still on the page.
      if (event.relatedTarget === null) overlay.current?.hidePopover();
    };
    const drop = (/** @type {DragEvent} */ event) => {
      if (!hasFiles(event) || !event.dataTransfer) return;
      event.preventDefault();
      overlay.current?.hidePopover();
      const files = dropped(event.dataTransfer);
      if (targetOf(event) === 'documents') {
        dialog.value = 'documents';
        offer(files);
      } else files.then(attach);
    };
    const listeners = /** @type {[string, any][]} */ ([['dragover', over], ['dragleave', leave], ['drop', drop]]);
    for (const [name, listener] of listeners) addEventListener(name, listener);
    return () => { for (const [name, listener] of listeners) removeEventListener(name, listener); };
  }, []);
  return html`<div id="drop" popover="manual" ref=${overlay}>
    <div class=${target === 'chat' ? 'target over' : 'target'} id="drop-chat"><p>${t.dropForChat}</p><p>${t.dropForChatAbout}</p></div>
    <div class=${target === 'documents' ? 'target over' : 'target'} id="drop-documents"><p>${t.dropForDocuments}</p><p>${t.dropForDocumentsAbout}</p></div>
  </div>`;
}
