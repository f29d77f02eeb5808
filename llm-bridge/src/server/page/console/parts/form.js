// A form made from the schema of a tool's arguments.

import * as shared from '../../dialogs/fields.js';
import { html } from '../../state/html.js';
import { c } from '../state.js';

/**
 * The fields of an object's schema, by `name`.
 * @param {{ schema: any }} properties
 */
export function Fields({ schema }) {
  const fields = shared.fieldsOf(schema);
  return fields.length === 0 ? html`<p class="empty">${c.noArguments}</p>` : html`<${shared.Fields} fields=${fields} />`;
}

/**
 * What was written. The server coerces and validates.
 * @param {HTMLFormElement} form
 * @param {any} schema
 */
export const valuesOf = (form, schema) => shared.valuesOf(form, shared.fieldsOf(schema));
