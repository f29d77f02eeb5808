// A form made from a JSON schema: the arguments of a call, or the answer to a question of a tool.

import { html } from '../state/html.js';
import { t } from '../state/language.js';

/** Lines of a text that are seen at once. */
const MOST_LINES = 10;

/** @typedef {'text' | 'number' | 'boolean' | 'enum' | 'json'} Kind `json` for what has no field of its own */
/** @typedef {{ name: string, kind: Kind, schema: any, required: boolean, given: boolean, value: unknown }} Field */

/**
 * The fields of an object's schema.
 * @param {any} schema
 * @param {Record<string, unknown> | null} given what is changed; it may have more than the schema names, and no default is put in
 * @returns {Field[]}
 */
export function fieldsOf(schema, given = null) {
  const described = schema?.properties ?? {};
  const required = new Set(schema?.required ?? []);
  return [...new Set([...Object.keys(given ?? {}), ...Object.keys(described)])].map((name) => {
    const field = resolved(described[name] ?? {}, schema);
    const isGiven = given !== null && Object.hasOwn(given, name);
    const value = isGiven ? given[name] : given === null ? (field.default ?? undefined) : undefined;
    return { name, schema: field, required: required.has(name), given: isGiven, value, kind: isGiven ? kindOfValue(value, field) : kindOf(field) };
  });
}

/**
 * @param {{ fields: Field[], titled?: boolean, disabled?: boolean }} properties `titled` where people are asked in words, and answer in a line
 */
export function Fields({ fields, titled = false, disabled = false }) {
  return fields.map((field) => html`<${Labelled} key=${field.name} field=${field} titled=${titled} disabled=${disabled} />`);
}

/**
 * A name as it is shown: the schema may have an empty one.
 * @param {string} name
 */
export const named = (name) => name || '""';

/** @param {{ field: Field, titled: boolean, disabled: boolean }} properties */
function Labelled({ field, titled, disabled }) {
  const { name, kind, schema, required, given, value } = field;
  const about = schema.description && html`<small>${schema.description}</small>`;
  const label = titled ? titleOf(name, schema) : html`<code>${named(name)}</code>`;
  if (kind === 'boolean' && (required || typeof value === 'boolean')) {
    return html`<label class="ask-field"><span><input type="checkbox" name=${name} data-field=${name} defaultChecked=${value === true} disabled=${disabled} /> ${label}</span>${about}</label>`;
  }
  return html`<label class="ask-field"><span>${label}${required || given ? '' : ` (${t.optional})`}</span>
    <${Control} field=${field} titled=${titled} disabled=${disabled} />${about}</label>`;
}

/** @param {{ field: Field, titled: boolean, disabled: boolean }} properties */
function Control({ field: { name, kind, schema, required, value }, titled, disabled }) {
  const shared = { name, 'data-field': name, disabled, 'aria-required': String(required) };
  const text = value === undefined ? '' : kind === 'json' ? JSON.stringify(value, null, 2) : String(value);
  if (kind === 'boolean' || kind === 'enum') {
    const choices = kind === 'enum' ? schema.enum : ['true', 'false'];
    return html`<select ...${shared}>${(!required || value === undefined) && html`<option value=""></option>`}
      ${choices.map((/** @type {string} */ choice) => html`<option value=${choice} selected=${choice === text}>${choice}</option>`)}</select>`;
  }
  if (kind === 'number') return html`<input type="number" step="any" min=${schema.minimum} max=${schema.maximum} defaultValue=${text} ...${shared} />`;
  if (titled && kind === 'text') {
    return html`<input type=${inputType(schema)} defaultValue=${text} autocomplete="off" maxlength=${schema.maxLength} ...${shared} />`;
  }
  return html`<textarea class=${kind === 'json' ? 'json' : ''} placeholder=${kind === 'json' ? 'JSON' : ''} rows=${linesOf(text)} spellcheck=${kind !== 'json'} defaultValue=${text} ...${shared}></textarea>`;
}

/**
 * What was written. The server coerces and validates.
 * @param {HTMLFormElement} form
 * @param {Field[]} fields
 * @returns {Record<string, unknown>}
 * @throws when a field that takes JSON has something else
 */
export function valuesOf(form, fields) {
  /** @type {[string, unknown][]} */
  const values = [];
  for (const { name, kind, given, required } of fields) {
    // By name the form has none that is empty.
    const control = /** @type {any} */ ([...form.elements].find((one) => /** @type {HTMLElement} */ (one).dataset.field === name));
    const text = control.value;
    if (control.type === 'checkbox') values.push([name, control.checked]);
    else if (text.trim() === '' && !(kind === 'text' && (given || required))) continue;
    else if (kind === 'number') values.push([name, Number(text)]);
    else if (kind === 'boolean') values.push([name, text === 'true']);
    else if (kind === 'json') values.push([name, parsed(text, named(name))]);
    else values.push([name, text]);
  }
  return Object.fromEntries(values);
}

/**
 * @param {string} text
 * @param {string} name
 */
export function parsed(text, name) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(t.isNotJson(name), { cause: error });
  }
}

/** @param {string} text */
export const linesOf = (text) => Math.min(MOST_LINES, text.split('\n').length + Math.floor(text.length / 60));

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

/**
 * @param {any} schema
 * @returns {Kind}
 */
function kindOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.every((/** @type {unknown} */ one) => typeof one === 'string')) return 'enum';
  const types = [schema.type].flat().filter((type) => type && type !== 'null');
  if (types.length !== 1) return 'json';
  if (types[0] === 'integer' || types[0] === 'number') return 'number';
  if (types[0] === 'boolean') return 'boolean';
  return types[0] === 'string' ? 'text' : 'json';
}

/**
 * What is there stays what it is, whatever the schema says.
 * @param {unknown} value
 * @param {any} schema
 * @returns {Kind}
 */
function kindOfValue(value, schema) {
  if (typeof value === 'string') return kindOf(schema) === 'enum' && schema.enum.includes(value) ? 'enum' : 'text';
  if (typeof value === 'number') return 'number';
  return typeof value === 'boolean' ? 'boolean' : 'json';
}

/**
 * @param {string} name
 * @param {any} schema
 */
function titleOf(name, schema) {
  const words = schema.title ?? named(name).replace(/_/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {any} schema */
function inputType({ format, writeOnly }) {
  if (writeOnly) return 'password';
  return /** @type {Record<string, string>} */ ({ email: 'email', uri: 'url', date: 'date' })[format] ?? 'text';
}
