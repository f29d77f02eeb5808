// Whether the model chooses a tool for the questions of its examples, as `toolrack try` says.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { prose } from '../../text/nodes.js';
import { stopTrial, toolTrial, tryTool } from '../api.js';
import { Fault, useChange, useEvery, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';

/** @import { TrialReport } from '../api.js' */

/** How often it is looked how far the model is, in milliseconds. */
const AGAIN = 1000;
/** How often a question may be asked. */
const MAX_TRIES = 20;

/** @param {{ name: string }} properties */
export function Trial({ name }) {
  const state = useLoaded(toolTrial);
  const { fault, busy, change } = useChange(state.again);
  const [tries, setTries] = useState('5');
  const running = state.value?.running === true;
  const isOwn = state.value?.tool === name;
  useEvery(running ? AGAIN : 0, state.look);
  const ask = (/** @type {any} */ event) => {
    event.preventDefault();
    if (event.target.reportValidity()) change(() => tryTool(name, Number(tries)), c.trialBegun(name));
  };
  return html`<form class="bar" id="trial" novalidate onSubmit=${ask}>
      <label><span>${c.tries}</span><input type="number" min="1" max=${MAX_TRIES} step="1" required value=${tries} onInput=${(/** @type {any} */ event) => setTries(event.target.value)} /></label>
      <button type="submit" disabled=${busy || running}>${c.trialAsk}</button>
      ${running && html`<button type="button" id="trial-stop" onClick=${() => change(stopTrial, c.trialStopped)}>${c.stop}</button>`}
    </form>
    <p class="note">${c.trialAbout}</p>
    <${Fault} text=${state.fault || fault || (isOwn && state.value?.error) || ''} onAgain=${state.fault ? state.again : undefined} />
    ${running && html`<p id="trial-progress" role="status">${c.trialLooks(state.value?.tool ?? '', state.value?.looks_at ?? '', state.value?.seconds ?? 0)}</p>`}
    ${isOwn && state.value?.report && html`<${Chosen} report=${state.value.report} />`}`;
}

/** @param {{ report: TrialReport }} properties */
function Chosen({ report: { model, tools, examples } }) {
  return html`<p class="note">${c.trialOf(model, tools)}</p>
    <${Table} label=${c.trial} empty="" columns=${[c.question, c.chosen, c.right, c.before, c.toChange]}
      rows=${examples.map(({ question, tries, chosen, right, before, advice }) => ({ key: question, cells: [
        question,
        c.ofTries(chosen, tries),
        html`<span class=${right === tries ? 'good' : right * 2 < tries ? 'bad' : ''}>${c.ofTries(right, tries)}</span>`,
        before === null ? '–' : c.ofTries(before.right, before.tries),
        advice.length > 0 && html`<ul class="changes">${advice.map((text) => html`<li>${prose(text)}</li>`)}</ul>`,
      ] }))} />`;
}
