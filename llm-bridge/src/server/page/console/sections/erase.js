// All that is kept of a person is erased, also of one who is no stored user.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { eraseUser } from '../api.js';
import { Fault, useChange } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { c } from '../state.js';

/** @import { Erased } from '../api.js' */

/** @param {{ onErased: () => void }} properties */
export function Erase({ onErased }) {
  const [id, setId] = useState('');
  const [erased, setErased] = useState(/** @type {Erased | null} */ (null));
  const { fault, busy, change } = useChange(onErased);
  const erase = async () => {
    setErased(null);
    if (await change(async () => setErased(await eraseUser(id)), c.erasedAll(id))) setId('');
  };
  return html`<div><h2>${c.erasePerson}</h2>
    <p class="note">${c.eraseAbout}</p>
    <form class="bar" id="erase-person" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label><span>${c.user}</span><input maxlength="256" autocomplete="off" spellcheck="false" value=${id} onInput=${(/** @type {any} */ event) => setId(event.target.value)} /></label>
      <${Sure} word=${c.erase} question=${c.eraseAsk(id)} disabled=${busy || id === ''} onSure=${erase} />
    </form>
    <${Fault} text=${fault} />
    ${erased && html`<p class="card" id="erased" role="status">${c.erasedParts(erased)}</p>`}</div>`;
}
