// The arguments of a call that waits for a person, to be changed: a field for each, or all of them as JSON.

import { useLayoutEffect, useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { tools } from '../state/store.js';
import { Fields, fieldsOf, linesOf, parsed, valuesOf } from './fields.js';
import { onEscape } from '../components/focus.js';

/** @param {{ tool: string, args: Record<string, unknown>, disabled: boolean, onSend: (changed: Record<string, unknown>) => void, onCancel: () => void }} properties */
export function ChangeForm({ tool, args, disabled, onSend, onCancel }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [json, setJson] = useState(/** @type {string | null} */ (null));
  const [fault, setFault] = useState('');
  const fields = fieldsOf(tools.value.find(({ name }) => name === tool)?.parameters, args);
  const read = () => (json === null ? valuesOf(/** @type {HTMLFormElement} */ (form.current), fields) : objectOf(json));
  const tried = (/** @type {(values: Record<string, unknown>) => void} */ run) => {
    try {
      setFault('');
      run(read());
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    }
  };
  useLayoutEffect(() => /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector('textarea, input, select'))?.focus(), []);
  return html`<form class="ask-form change-form" novalidate ref=${form} onKeyDown=${onEscape(onCancel)} onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); tried(onSend); }}>
    ${json !== null
      ? html`<label class="ask-field"><span>${t.arguments}</span><textarea class="json" name="all" rows=${linesOf(json)} value=${json} spellcheck="false" disabled=${disabled}
          onInput=${(/** @type {any} */ event) => setJson(event.target.value)}></textarea></label>`
      : html`<${Fields} fields=${fields} disabled=${disabled} />`}
    <div class="call-answers">
      <button type="submit" class="allow allow-changed" disabled=${disabled}>${t.allowChanged}</button>
      ${json === null && html`<button type="button" class="quiet as-json" disabled=${disabled}
        onClick=${() => tried((values) => setJson(JSON.stringify(values, null, 2)))}>${t.asJson}</button>`}
      <button type="button" class="quiet not-so" disabled=${disabled} onClick=${onCancel}>${t.cancel}</button>
    </div>
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}
  </form>`;
}

/** @param {string} text */
function objectOf(text) {
  const value = parsed(text, t.arguments);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(t.isNotJson(t.arguments));
  return value;
}
