// The question of a tool in its card: a button for each choice, or a small form.

import { useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { answerQuestion } from '../state/api.js';
import { t } from '../state/language.js';
import { look } from '../state/inbox.js';
import { answered } from '../state/turn.js';
import { Fields, fieldsOf, valuesOf } from './fields.js';
import { toCard } from '../components/focus.js';
import { TimeLeft } from '../components/timeleft.js';

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
  const fields = fieldsOf(question.schema);
  const send = async (/** @type {Record<string, unknown> | null} */ answer) => {
    const back = toCard();
    setSent(true);
    setFault('');
    try {
      await answerQuestion(question.id, answer);
      answered(question.id);
      look();
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      setSent(false);
      back();
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      // What is left empty is not answered; the server says what it needs.
      const given = Object.entries(valuesOf(/** @type {HTMLFormElement} */ (form.current), fields)).filter(([, value]) => value !== '');
      send(Object.fromEntries(given));
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    }
  };
  const [first] = fields;
  const choices = fields.length === 1 && first?.kind === 'enum' ? first.schema.enum : null;
  const asButtons = choices?.length <= MOST_BUTTONS && choices.every((/** @type {string} */ choice) => choice.length <= LONGEST_BUTTON);
  const decline = html`<button type="button" disabled=${sent} onClick=${() => send(null)}>${t.doNotAnswer}</button>`;
  return html`<form class="ask-form" novalidate ref=${form} onSubmit=${submit}>
    <p>${question.message} <${TimeLeft} call=${call} /></p>
    ${!asButtons && html`<${Fields} fields=${fields} titled disabled=${sent} />`}
    <div class="call-answers">
      ${asButtons && first ? choices.map((/** @type {string} */ choice) => html`<button type="button" disabled=${sent} onClick=${() => send({ [first.name]: choice })}>${choice}</button>`)
        : html`<button type="submit" class="allow" disabled=${sent}>${t.giveAnswer}</button>`}
      ${decline}
    </div>
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}
  </form>`;
}
