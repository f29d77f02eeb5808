// A tool is registered by its spec, as `toolrack tools register` does.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { registerTool } from '../api.js';
import { TextFile } from '../parts/file.js';
import { Fault, useChange } from '../parts/loaded.js';
import { c } from '../state.js';

const EXAMPLE = JSON.stringify({
  tool_name: 'weather_lookup',
  version: '1.0.0',
  description: 'Gives the weather of a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  output_schema: {},
}, null, 2);

/** @param {{ onRegistered: () => void }} properties */
export function Register({ onRegistered }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState('');
  const { fault, busy, change } = useChange(onRegistered);
  const register = async (/** @type {Event} */ event) => {
    event.preventDefault();
    /** @type {any} */
    let spec;
    try {
      spec = JSON.parse(text);
      setWrong('');
    } catch {
      setWrong(c.notJson(c.spec));
      return;
    }
    if (await change(() => registerTool(spec), c.registered(String(spec?.tool_name)))) setText('');
  };
  return html`<details id="register"><summary>${c.register}</summary>
    <p class="note">${c.registerAbout}</p>
    <form onSubmit=${register}>
      <label class="ask-field"><span>${c.spec}</span><textarea class="json" rows="10" required spellcheck="false" placeholder=${EXAMPLE} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea></label>
      <p class="bar"><${TextFile} label=${c.specFile} accept=".json,application/json" onText=${(/** @type {string} */ given) => setText(given || text)} />
        <button type="submit" class="main" disabled=${busy}>${c.registerIt}</button></p>
    </form>
    <${Fault} text=${wrong || fault} />
  </details>`;
}
