// Asks for the key of a server that wants one.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { keyDialog } from '../state/key.js';
import { t } from '../state/language.js';
import { health } from '../state/store.js';

export function KeyDialog() {
  const asks = keyDialog.value;
  // Another one after a refused key, so that it opens anew.
  return asks && html`<${Ask} key=${asks.again} again=${asks.again} close=${asks.close} />`;
}

/** @param {{ again: boolean, close: (given: string | null) => void }} properties */
function Ask({ again, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
    field.current?.focus();
  });
  const signIn = health.value?.sign_in;
  const take = (/** @type {Event} */ event) => {
    event.preventDefault();
    const key = field.current?.value ?? '';
    if (field.current) field.current.value = '';
    close(key);
  };
  return html`<dialog id="key-dialog" ref=${dialog} aria-labelledby="key-title" onCancel=${(/** @type {Event} */ event) => { event.preventDefault(); close(null); }}>
    <form onSubmit=${take}>
      <h2 id="key-title">${signIn ? t.signInTitle : t.keyTitle}</h2>
      ${signIn && html`<p><a id="sign-in" href="sign-in">${t.signIn}</a></p>`}
      <p>${again ? t.keyRefused : signIn ? t.orKey : t.keyAbout}</p>
      <label class="unseen" for="key">${t.key}</label>
      <input type="password" id="key" ref=${field} autocomplete="off" spellcheck="false" required pattern="[!-~]+" title=${t.keyPattern} />
      <div class="buttons"><button type="button" onClick=${() => close(null)}>${t.notNow}</button><button type="submit">${t.useKey}</button></div>
    </form>
  </dialog>`;
}
