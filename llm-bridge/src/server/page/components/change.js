// The arguments of a call that waits for a person, to be changed: a field for each, or all of them as JSON.

import { useEffect, useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { tools } from '../state/store.js';

/** Lines of a text that are seen at once. */
const MOST_LINES = 10;

/** @typedef {'text' | 'number' | 'boolean' | 'json'} Kind */
/** @typedef {{ name: string, kind: Kind, given: boolean, value: unknown, about: string }} ArgumentField */

/** @param {{ tool: string, args: Record<string, unknown>, disabled: boolean, onSend: (changed: Record<string, unknown>) => void }} properties */
export function ChangeForm({ tool, args, disabled, onSend }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [json, setJson] = useState(/** @type {string | null} */ (null));
  const [fault, setFault] = useState('');
  const fields = fieldsOf(args, tools.value.find(({ name }) => name === tool)?.parameters);
  const read = () => (json === null ? valuesOf(fields, /** @type {HTMLFormElement} */ (form.current)) : objectOf(json));
  const tried = (/** @type {(values: Record<string, unknown>) => void} */ run) => {
    try {
      setFault('');
      run(read());
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    }
  };
  useEffect(() => /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector('textarea, input'))?.focus(), []);
  return html`<form class="ask-form change-form" novalidate ref=${form} onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); tried(onSend); }}>
    ${json !== null
      ? html`<label class="ask-field"><span>${t.arguments}</span><textarea class="json" name="all" rows=${linesOf(json)} value=${json} spellcheck="false" disabled=${disabled}
          onInput=${(/** @type {any} */ event) => setJson(event.target.value)}></textarea></label>`
      : fields.map((field) => html`<${Field} key=${field.name} field=${field} disabled=${disabled} />`)}
    <div class="call-answers">
      <button type="submit" class="allow allow-changed" disabled=${disabled}>${t.allowChanged}</button>
      ${json === null && html`<button type="button" class="quiet as-json" disabled=${disabled}
        onClick=${() => tried((values) => setJson(JSON.stringify(values, null, 2)))}>${t.asJson}</button>`}
    </div>
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}
  </form>`;
}

/** @param {{ field: ArgumentField, disabled: boolean }} properties */
function Field({ field: { name, kind, given, value, about }, disabled }) {
  const text = !given ? '' : kind === 'json' ? JSON.stringify(value, null, 2) : String(value);
  if (kind === 'boolean' && given) {
    return html`<label class="ask-field"><span><input type="checkbox" name=${name} defaultChecked=${value} disabled=${disabled} /> ${name}</span>${about && html`<small>${about}</small>`}</label>`;
  }
  return html`<label class="ask-field"><span>${name}${given ? '' : ` (${t.optional})`}</span>
    ${kind === 'number' ? html`<input type="number" step="any" name=${name} defaultValue=${text} disabled=${disabled} />`
      : kind === 'boolean' ? html`<select name=${name} disabled=${disabled}><option value=""></option><option value="true">true</option><option value="false">false</option></select>`
        : html`<textarea name=${name} class=${kind === 'json' ? 'json' : ''} rows=${linesOf(text)} defaultValue=${text} spellcheck=${kind !== 'json'} disabled=${disabled}></textarea>`}
    ${about && html`<small>${about}</small>`}</label>`;
}

/**
 * What the model has given, and what it might have given besides.
 * @param {Record<string, unknown>} args
 * @param {any} schema
 * @returns {ArgumentField[]}
 */
function fieldsOf(args, schema) {
  const described = schema?.properties ?? {};
  const names = [...new Set([...Object.keys(args), ...Object.keys(described)])];
  return names.map((name) => {
    const given = Object.hasOwn(args, name);
    const value = args[name];
    return { name, given, value, kind: kindOf(given ? typeof value : described[name]?.type), about: described[name]?.description ?? '' };
  });
}

/**
 * @param {unknown} type of JavaScript or of a schema
 * @returns {Kind}
 */
function kindOf(type) {
  if (type === 'string') return 'text';
  if (type === 'integer' || type === 'number') return 'number';
  return type === 'boolean' ? 'boolean' : 'json';
}

/**
 * The server coerces and checks them.
 * @param {ArgumentField[]} fields
 * @param {HTMLFormElement} form
 */
function valuesOf(fields, form) {
  /** @type {[string, unknown][]} */
  const values = [];
  for (const { name, kind, given } of fields) {
    const control = /** @type {any} */ (form.elements.namedItem(name));
    const text = control.value;
    if (control.type === 'checkbox') values.push([name, control.checked]);
    else if (kind === 'text' && given) values.push([name, text]);
    else if (text.trim() === '') continue;
    else if (kind === 'text') values.push([name, text]);
    else if (kind === 'number') values.push([name, Number(text)]);
    else if (kind === 'boolean') values.push([name, text === 'true']);
    else values.push([name, parsed(text, name)]);
  }
  return Object.fromEntries(values);
}

/** @param {string} text */
function objectOf(text) {
  const value = parsed(text, t.arguments);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(t.isNotJson(t.arguments));
  return value;
}

/**
 * @param {string} text
 * @param {string} name
 */
function parsed(text, name) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(t.isNotJson(name), { cause: error });
  }
}

/** @param {string} text */
const linesOf = (text) => Math.min(MOST_LINES, text.split('\n').length + Math.floor(text.length / 60));
