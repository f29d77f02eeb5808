// The question of a tool in its card: a button for each choice, or a small form.

import { useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { answerQuestion } from '../state/api.js';
import { t } from '../state/language.js';
import { look } from '../state/inbox.js';
import { answered } from '../state/turn.js';
import { TimeLeft } from './timeleft.js';

/** @import { CallPart, Question } from '../state/types.d.ts' */

/** Choices that get a button each; more are a list. */
const MOST_BUTTONS = 6;
/** Choices longer than this, in characters, are a list, too. */
const LONGEST_BUTTON = 60;

/** @param {{ question: Question, call: Partial<CallPart> }} properties */
export function QuestionForm({ question, call }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [fault, setFault] = useState('');
  const [sent, setSent] = useState(false);
  /** @type {[string, any][]} */
  const fields = Object.entries(question.schema?.properties ?? {});
  const required = new Set(question.schema?.required ?? []);
  const send = async (/** @type {Record<string, unknown> | null} */ answer) => {
    setSent(true);
    try {
      await answerQuestion(question.id, answer);
      answered(question.id);
      look();
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      setSent(false);
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const elements = form.current?.elements;
    const given = fields.map(([name]) => [name, valueOf(/** @type {any} */ (elements?.namedItem(name)))]).filter(([, value]) => value !== null);
    send(Object.fromEntries(given));
  };
  const [first] = fields;
  const choices = fields.length === 1 && first ? first[1].enum : null;
  const asButtons = choices?.length <= MOST_BUTTONS && choices.every((/** @type {string} */ choice) => choice.length <= LONGEST_BUTTON);
  const decline = html`<button type="button" disabled=${sent} onClick=${() => send(null)}>${t.doNotAnswer}</button>`;
  return html`<form class="ask-form" novalidate ref=${form} onSubmit=${submit}>
    <p>${question.message} <${TimeLeft} call=${call} /></p>
    ${!asButtons && fields.map(([name, field]) => html`<${Field} key=${name} name=${name} field=${field} required=${required.has(name)} disabled=${sent} />`)}
    <div class="call-answers">
      ${asButtons && first ? choices.map((/** @type {string} */ choice) => html`<button type="button" disabled=${sent} onClick=${() => send({ [first[0]]: choice })}>${choice}</button>`)
        : html`<button type="submit" class="allow" disabled=${sent}>${t.giveAnswer}</button>`}
      ${decline}
    </div>
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}
  </form>`;
}

/**
 * `null` for what is left empty; the server coerces and checks.
 * @param {HTMLInputElement | HTMLSelectElement | null} control
 */
function valueOf(control) {
  if (control instanceof HTMLInputElement && control.type === 'checkbox') return control.checked;
  return control === null || control.value === '' ? null : control.value;
}

/** @param {{ name: string, field: any, required: boolean, disabled: boolean }} properties */
function Field({ name, field, required, disabled }) {
  const title = fieldTitle(name, field);
  const given = field.default ?? null;
  if (field.type === 'boolean') {
    return html`<label class="ask-field"><span><input type="checkbox" name=${name} defaultChecked=${given === true} disabled=${disabled} /> ${title}</span>
      ${field.description && html`<small>${field.description}</small>`}</label>`;
  }
  return html`<label class="ask-field"><span>${title}${required ? '' : ` (${t.optional})`}</span>
    ${field.enum
      ? html`<select name=${name} disabled=${disabled}>${!required && html`<option value=""></option>`}
          ${field.enum.map((/** @type {string} */ choice) => html`<option value=${choice} selected=${choice === given}>${choice}</option>`)}</select>`
      : html`<input name=${name} type=${kind(field)} defaultValue=${given === null ? '' : String(given)} step="any" autocomplete="off" disabled=${disabled}
          min=${field.minimum} max=${field.maximum} maxlength=${field.maxLength} aria-required=${String(required)} />`}
    ${field.description && html`<small>${field.description}</small>`}
  </label>`;
}

/**
 * @param {string} name
 * @param {any} field
 */
function fieldTitle(name, field) {
  const words = field.title ?? name.replace(/_/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {any} field */
function kind({ type, format, writeOnly }) {
  if (writeOnly) return 'password';
  if (type === 'number' || type === 'integer') return 'number';
  return /** @type {Record<string, string>} */ ({ email: 'email', uri: 'url', date: 'date' })[format] ?? 'text';
}
