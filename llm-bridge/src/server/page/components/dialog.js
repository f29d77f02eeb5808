// A modal dialog. Escape and its button close it; the browser gives the focus back.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { Icon } from './icon.js';

/** @param {{ id: string, title: string, about?: any, onClose: () => void, children?: any }} properties */
export function Dialog({ id, title, about, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
  }, []);
  // The browser tells of it later, when another dialog may be open already.
  const shut = () => { dialog.current?.close(); onClose(); };
  return html`<dialog id=${id} class="panel-dialog" ref=${dialog} aria-labelledby=${`${id}-title`} onClose=${() => dialog.current && onClose()}>
    <div class="dialog-head">
      <h2 id=${`${id}-title`}>${title}</h2>
      ${about ?? html`<span></span>`}
      <button id=${`${id}-close`} class="quiet" type="button" aria-label=${t.close} onClick=${shut}><${Icon} name="close" /></button>
    </div>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}
