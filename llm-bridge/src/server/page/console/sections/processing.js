// What models do with documents: vectors are computed again, names extracted.

import { html } from '../../state/html.js';
import { embedAgain, extractNames, processing, stopExtracting } from '../api.js';
import { Fault, useChange, useEvery, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { c } from '../state.js';

/** @import { DocumentProcessing } from '../api.js' */

/** How often it is looked how far the model is, in milliseconds. */
const AGAIN = 1000;

/** @param {{ below: string }} properties the folder, or the document, that is shown; empty for all */
export function Processing({ below }) {
  const state = useLoaded(() => processing(below), [below]);
  const { fault, busy, change } = useChange(state.again);
  const running = state.value?.extraction?.running === true;
  useEvery(running ? AGAIN : 0, state.look);
  const { embedding_model: model = null, unextracted = null, extracts = false } = state.value ?? {};
  return html`<div><h2>${c.processing}</h2>
    <${Fault} text=${state.fault || fault} onAgain=${state.fault ? state.again : undefined} />
    ${below !== '' && html`<p class="note" id="processed-below">${c.processedBelow(below)}</p>`}
    ${state.value && html`<p class="note">${model === null ? c.noEmbedding : c.embedding(model)}</p>
      ${model !== null && html`<p class="bar"><${Sure} word=${below === '' ? c.embedAgain : c.embedSomeAgain} question=${c.embedAgainAsk(below)} disabled=${busy} onSure=${() => change(() => embedAgain(below), c.embedsAgain)} /></p>`}
      <p class="note" id="unextracted">${unextracted === null ? c.noExtraction : c.unextracted(unextracted)} ${unextracted !== null && extracts && c.extractsItself}</p>
      ${unextracted !== null && html`<p class="bar">${running ? html`<button type="button" id="extract-stop" disabled=${busy} onClick=${() => change(stopExtracting, c.extractionStopped)}>${c.stop}</button>`
        : unextracted > 0 && html`<${Sure} word=${c.extract} question=${c.extractAsk(unextracted)} disabled=${busy} onSure=${() => change(() => extractNames(below), c.extractionBegun)} />`}</p>`}
      ${state.value.extraction && html`<${Extraction} of=${state.value.extraction} />`}`}</div>`;
}

/** @param {{ of: NonNullable<DocumentProcessing['extraction']> }} properties */
function Extraction({ of: { running, passages, failed, names, relations, tokens, error } }) {
  return html`<p id="extraction" role="status">${c.extraction(passages, names, relations, tokens)} ${failed > 0 && c.extractionFailed(failed)} ${running ? c.runsStill : error === null ? c.extractionDone : ''}</p>
    <${Fault} text=${error ?? ''} />`;
}
