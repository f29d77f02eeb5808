// A form made from the schema of a tool's arguments.

import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { c } from '../state.js';

/**
 * The fields of an object's schema, by `name`; what has no field of its own is written as JSON.
 * @param {{ schema: any }} properties
 */
export function Fields({ schema }) {
  const required = new Set(schema?.required ?? []);
  /** @type {[string, any][]} */
  const fields = Object.entries(schema?.properties ?? {});
  if (fields.length === 0) return html`<p class="empty">${c.noArguments}</p>`;
  return fields.map(([name, field]) => html`<${Field} key=${name} name=${name} field=${resolved(field, schema)} required=${required.has(name)} />`);
}

/** @param {{ name: string, field: any, required: boolean }} properties */
function Field({ name, field, required }) {
  const kind = kindOf(field);
  const id = `argument-${name}`;
  const shared = { id, name, 'aria-required': String(required), 'aria-describedby': field.description ? `${id}-about` : undefined };
  const given = field.default;
  const label = html`<code>${name}</code>${!required && ` (${t.optional})`}`;
  const about = field.description && html`<small id=${`${id}-about`}>${field.description}</small>`;
  if (kind === 'boolean' && required) {
    return html`<label class="ask-field"><span><input type="checkbox" defaultChecked=${given === true} ...${shared} /> ${label}</span>${about}</label>`;
  }
  return html`<label class="ask-field"><span>${label}</span>
    ${kind === 'boolean' ? html`<select ...${shared}><option value=""></option><option value="true">true</option><option value="false">false</option></select>`
      : kind === 'enum' ? html`<select ...${shared}>${!required && html`<option value=""></option>`}${field.enum.map((/** @type {any} */ one) => html`<option value=${one} selected=${one === given}>${String(one)}</option>`)}</select>`
        : kind === 'number' ? html`<input type="number" step="any" defaultValue=${given ?? ''} ...${shared} />`
          : html`<textarea rows=${kind === 'json' ? 3 : 1} class=${kind === 'json' ? 'json' : ''} placeholder=${kind === 'json' ? 'JSON' : ''} spellcheck="false"
              defaultValue=${given === undefined || given === null ? '' : kind === 'json' ? JSON.stringify(given) : String(given)} ...${shared}></textarea>`}
    ${about}</label>`;
}

/**
 * What was written. The server coerces and validates.
 * @param {HTMLFormElement} form
 * @param {any} schema
 * @throws when a field that takes JSON has something else
 */
export function valuesOf(form, schema) {
  /** @type {Record<string, unknown>} */
  const values = {};
  const required = new Set(schema?.required ?? []);
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const control = /** @type {any} */ (form.elements.namedItem(name));
    const kind = kindOf(resolved(field, schema));
    if (control.type === 'checkbox') values[name] = control.checked;
    else if (control.value === '' && !(required.has(name) && kind === 'text')) continue;
    else if (kind === 'number') values[name] = Number(control.value);
    else if (kind === 'boolean') values[name] = control.value === 'true';
    else if (kind === 'json') values[name] = json(name, control.value);
    else values[name] = control.value;
  }
  return values;
}

/**
 * @param {string} name
 * @param {string} text
 */
function json(name, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(c.notJson(name), { cause: error });
  }
}

/**
 * A field behind a reference, or the one kind that it has besides null.
 * @param {any} field
 * @param {any} schema
 */
function resolved(field, schema) {
  const name = field.$ref?.split('/').at(-1);
  const whole = name ? { ...(schema.$defs ?? schema.definitions)?.[name], ...field } : field;
  const kinds = (whole.anyOf ?? whole.oneOf)?.filter((/** @type {any} */ one) => one.type !== 'null');
  return kinds?.length === 1 ? { ...kinds[0], ...whole, anyOf: undefined, oneOf: undefined } : whole;
}

/** @param {any} field */
function kindOf(field) {
  if (Array.isArray(field.enum) && field.enum.every((/** @type {unknown} */ one) => typeof one === 'string')) return 'enum';
  const types = [field.type].flat().filter((type) => type && type !== 'null');
  if (types.length !== 1) return 'json';
  if (types[0] === 'integer' || types[0] === 'number') return 'number';
  if (types[0] === 'boolean') return 'boolean';
  return types[0] === 'string' ? 'text' : 'json';
}
