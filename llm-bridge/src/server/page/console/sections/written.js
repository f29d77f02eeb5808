// The tools as they are written for models: their definitions in the format of an API, and what is to be mended in them.

import { useState } from '../../vendor/hooks.js';
import { CopyButton } from '../../components/copy.js';
import { html } from '../../state/html.js';
import { number } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { checkTools, definitions } from '../api.js';
import { Fault, useChange } from '../parts/loaded.js';
import { c } from '../state.js';

const FORMATS = ['openai', 'responses', 'anthropic', 'gemini', 'ollama', 'mcp'];

export function Definitions() {
  const [format, setFormat] = useState('openai');
  const [strict, setStrict] = useState(false);
  const [made, setMade] = useState(/** @type {import('../api.js').Definitions | null} */ (null));
  const { fault, busy, change } = useChange(() => {});
  const text = JSON.stringify(made?.definitions, null, 2);
  const write = (/** @type {Event} */ event) => {
    event.preventDefault();
    change(async () => setMade(await definitions(format, strict)), c.definitions);
  };
  return html`<details id="definitions"><summary>${c.definitions}</summary>
    <form class="bar" onSubmit=${write}>
      <label><span>${c.format}</span><select value=${format} onChange=${(/** @type {any} */ event) => setFormat(event.target.value)}>${FORMATS.map((one) => html`<option value=${one} selected=${one === format}>${one}</option>`)}</select></label>
      <label class="tick"><input type="checkbox" checked=${strict} onChange=${(/** @type {any} */ event) => setStrict(event.target.checked)} /> ${c.strict}</label>
      <button type="submit" disabled=${busy}>${c.show}</button> ${made && html`<${CopyButton} text=${() => text} />`}
    </form>
    <${Fault} text=${fault} />
    ${made && html`<ul class="changes">${made.notes.map((note) => html`<li>${prose(note)}</li>`)}</ul>
      <div class="card"><pre tabindex="0" role="group" aria-label=${c.definitions}>${text}</pre></div>`}
  </details>`;
}

export function Check() {
  const [found, setFound] = useState(/** @type {import('../api.js').Checked | null} */ (null));
  const [budget, setBudget] = useState('');
  const { fault, busy, change } = useChange(() => {});
  const check = (/** @type {Event} */ event) => {
    event.preventDefault();
    change(async () => setFound(await checkTools(budget)), '');
  };
  return html`<details id="check"><summary>${c.checkTools}</summary>
    <p class="note">${prose(c.checkAbout)}</p>
    <form class="bar" onSubmit=${check}>
      <label><span>${c.budget}</span><input type="number" min="0" step="1" value=${budget} onInput=${(/** @type {any} */ event) => setBudget(event.target.value)} /></label>
      <button type="submit" disabled=${busy}>${c.check}</button></form>
    <${Fault} text=${fault} />
    ${found && html`<p role="status">${c.checkFound(number(found.tools), found.faults.length, number(found.tokens), number(found.budget))}</p>
      <ul class="changes">${found.faults.map((text) => html`<li class="bad">${prose(text)}</li>`)}${found.warnings.map((text) => html`<li>${prose(text)}</li>`)}</ul>`}
  </details>`;
}
