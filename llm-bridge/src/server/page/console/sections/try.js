// A tool is tried by a form made from its schema, with the rights, limits and questions of any call.

import { useEffect, useRef, useState } from '../../vendor/hooks.js';
import { answerApproval } from '../../state/api.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration } from '../../text/format.js';
import { execute, waitingCalls } from '../api.js';
import { named } from '../../dialogs/fields.js';
import { Fields, valuesOf } from '../parts/form.js';
import { Fault, useEvery, useLoaded } from '../parts/loaded.js';
import { c } from '../state.js';
import { Asked } from './approvals.js';

/** @import { Tool } from '../../state/types.d.ts' */

/** How often it is looked whether the call still waits for a person, in milliseconds. */
const AGAIN = 1000;
/** How long a call waits for the answer to a question that the tool asks, in seconds. */
const QUESTION_WAIT = 300;

/** @param {{ tool: Tool, onCalled: () => void }} properties */
export function Try({ tool, onCalled }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [running, setRunning] = useState(/** @type {AbortController | null} */ (null));
  const [asked, setAsked] = useState(/** @type {{ id: string, onAnswer: () => void } | null} */ (null));
  const [reply, setReply] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  // The required texts that are empty, and were told to be.
  const told = useRef('');
  useEffect(() => () => running?.abort(), [running]);
  const make = async (/** @type {Record<string, unknown>} */ values, /** @type {AbortSignal} */ signal) => {
    // It does not wait, and so says which question is its own: a chat may wait for the same tool.
    const first = await execute(tool.name, values, 0, signal);
    if (first.approval) await answered(first.approval, signal, setAsked);
    return first.approval || first.question ? execute(tool.name, values, QUESTION_WAIT, signal) : first;
  };
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!form.current) return;
    const stop = new AbortController();
    try {
      const values = valuesOf(form.current, tool.parameters);
      const empty = Object.entries(values).filter(([, value]) => value === '').map(([name]) => `\`${named(name)}\``).join(', ');
      const isTold = empty === '' || empty === told.current;
      told.current = empty;
      if (!isTold) throw new Error(c.emptyTexts(empty));
      setFault('');
      setReply(null);
      setRunning(stop);
      setReply(await make(values, stop.signal));
    } catch (error) {
      if (!stop.signal.aborted) setFault(/** @type {Error} */ (error).message);
    } finally {
      setRunning(null);
      setAsked(null);
      onCalled();
    }
  };
  return html`<form id="try" ref=${form} novalidate onSubmit=${submit}>
    <${Fields} schema=${tool.parameters} />
    <p class="bar"><button type="submit" class="main" disabled=${running !== null}>${c.call}</button>
      ${running && html`<button type="button" onClick=${() => running.abort()}>${t.stop}</button>`}</p>
  </form>
  ${asked && html`<${Waiting} key=${asked.id} ...${asked} />`}
  <${Fault} text=${fault} />
  ${reply && html`<div id="reply" role="status" class=${reply.success ? '' : 'fault'}>
    <p>${reply.success ? t.states.ok : t.states.failed}${typeof reply.audit?.duration_ms === 'number' && ` · ${duration(reply.audit.duration_ms)}`}</p>
    <pre tabindex="0" role="group" aria-label=${t.result}>${shown(reply)}</pre></div>`}`;
}

/**
 * Waits until a call is answered, here or elsewhere. One that is stopped is refused: nobody else is to be asked about it.
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {(asked: { id: string, onAnswer: () => void } | null) => void} show
 * @returns {Promise<void>}
 */
function answered(id, signal, show) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      answerApproval(id, false).catch(() => {});
      reject(signal.reason);
    };
    const onAnswer = () => {
      signal.removeEventListener('abort', stop);
      show(null);
      resolve();
    };
    signal.addEventListener('abort', stop);
    show({ id, onAnswer });
  });
}

/** @param {any} reply */
function shown({ success, result, error }) {
  const value = success ? (result ?? null) : error;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/**
 * The question whether the call may be made; somebody else may answer it.
 * @param {{ id: string, onAnswer: () => void }} properties
 */
function Waiting({ id, onAnswer }) {
  const waiting = useLoaded(waitingCalls);
  useEvery(AGAIN, waiting.look);
  const own = waiting.value?.find((one) => one.id === id);
  const isAnswered = waiting.value !== null && !own;
  useEffect(() => { if (isAnswered) onAnswer(); }, [isAnswered]);
  return own && html`<div class="card"><${Asked} call=${own} onAnswer=${onAnswer} /></div>`;
}
