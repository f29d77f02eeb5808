// The models, and what one of them can do: the doctor's table.

import { useState } from '../../vendor/hooks.js';
import * as shared from '../../state/api.js';
import { html } from '../../state/html.js';
import { health } from '../../state/store.js';
import { duration, number } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import * as api from '../api.js';
import { TextFile } from '../parts/file.js';
import { Fault, useChange, useEvery, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { account, c } from '../state.js';

/** @import { Finding, Report } from '../api.js' */

/** How often it is looked how far the doctor is, in milliseconds. */
const AGAIN = 1000;

export function Models() {
  const models = useLoaded(shared.models);
  return html`<div class="parts"><div><h2>${c.modelsTitle}</h2><${Fault} text=${models.fault} onAgain=${models.again} />
    ${models.value && html`<${Table} label=${c.modelsTitle} empty=${c.noModels} columns=${[c.model, c.state]}
      rows=${models.value.map((/** @type {string} */ name) => ({ key: name, cells: [html`<code>${name}</code>`, name === health.value?.model ? c.isDefault : '–'] }))} />`}</div>
    ${account.value?.operator && html`<${Upstreams} />`}
    <div><h2>${c.doctor}</h2>
    ${account.value?.operator ? html`<${Doctor} names=${models.value ?? []} />` : html`<p class="note">${c.doctorForOperators}</p>`}</div></div>`;
}

/** The model servers, each with what is known of it. */
function Upstreams() {
  const all = useLoaded(api.upstreams);
  return html`<div><h2>${c.upstreams}</h2>
    <${Fault} text=${all.fault} onAgain=${all.again} />
    ${all.value && html`<${Table} label=${c.upstreams} empty=${c.noModels} columns=${[c.name, c.address, c.kind, c.state, c.modelsTitle, c.fallback]}
      rows=${all.value.map(({ name, address, kind, error, models, fallback }) => ({ key: name, cells: [
        html`<b>${name}</b>`,
        html`<code>${address}</code>`,
        kind ?? c.notRecognised,
        error === null ? html`<span class="good">${c.reachable}</span>` : html`<span class="bad">${prose(error)}</span>`,
        models === null ? '–' : number(models),
        fallback ? html`<code>${fallback}</code>` : '–',
      ] }))} />`}</div>`;
}

/** @param {{ names: string[] }} properties */
function Doctor({ names }) {
  const state = useLoaded(api.doctor);
  const { fault, busy, change } = useChange(state.again);
  const [model, setModel] = useState('');
  const [seconds, setSeconds] = useState('');
  const [template, setTemplate] = useState('');
  const [written, setWritten] = useState('');
  const asked = state.value;
  const running = asked?.running === true;
  useEvery(running ? AGAIN : 0, state.look);
  const ask = (/** @type {Event} */ event) => {
    event.preventDefault();
    setWritten('');
    const given = { model: model.trim() || undefined, template: template.trim() && template || undefined, seconds: Number(seconds) || undefined };
    change(() => api.askDoctor(given), c.doctorAsks);
  };
  const write = () => change(async () => setWritten(await api.writeDoctor()), c.doctorWrite);
  return html`<p class="note">${c.doctorAbout}</p>
    <form id="doctor" onSubmit=${ask}><div class="bar">
      <label class="grow"><span>${c.model}</span><input list="doctor-models" maxlength="256" autocomplete="off" spellcheck="false" placeholder=${health.value?.model ?? ''}
        value=${model} onInput=${(/** @type {any} */ event) => setModel(event.target.value)} /></label>
      <datalist id="doctor-models">${names.map((name) => html`<option value=${name}></option>`)}</datalist>
      <label><span>${c.doctorSeconds}</span><input type="number" min="10" max="3600" step="1" placeholder="300" value=${seconds} onInput=${(/** @type {any} */ event) => setSeconds(event.target.value)} /></label>
      <button type="submit" class="main" disabled=${busy || running}>${c.doctorAsk}</button>
      ${running && html`<button type="button" onClick=${() => change(api.stopDoctor, c.doctorStopped)}>${c.stop}</button>`}</div>
      <details id="doctor-template"><summary>${c.doctorTemplate}</summary><p class="note">${prose(c.doctorTemplateAbout)}</p>
        <label class="ask-field"><span>${c.doctorTemplateText}</span><textarea rows="6" spellcheck="false" value=${template} onInput=${(/** @type {any} */ event) => setTemplate(event.target.value)}></textarea></label>
        <p class="bar"><${TextFile} label=${c.specFile} accept=".jinja,.jinja2,.j2,text/plain" onText=${setTemplate} /></p></details>
    </form>
    <${Fault} text=${state.fault || fault || asked?.error || ''} onAgain=${state.fault ? state.again : undefined} />
    ${running && html`<p id="doctor-progress" role="status">${c.doctorLooks(asked?.looks_at ?? '', asked?.seconds ?? 0)}</p>`}
    ${asked?.report && html`<${Seen} report=${asked.report} />
      ${asked.report.toml ? html`<p class="note">${c.doctorSettings}</p><div class="card"><pre tabindex="0" role="group" aria-label=${c.doctorSettings}>${asked.report.toml.trim()}</pre>
        <p class="bar"><${Sure} word=${c.doctorWrite} question=${c.doctorWriteAsk} disabled=${busy} onSure=${write} /></p>
        ${written && html`<p id="doctor-written" role="status">${written}</p>`}</div>` : html`<p class="note">${c.doctorNoSettings}</p>`}`}`;
}

/** @param {{ report: Report }} properties */
function Seen({ report }) {
  return html`<p class="note">${c.doctorAsked(report.model, report.server.address, report.server.kind, report.requests, duration(report.seconds * 1000))}</p>
    <${Table} label=${c.doctor} empty="" columns=${[c.probe, c.seen, c.details]}
      rows=${Object.entries(report.probes).map(([name, finding]) => ({ key: name, off: finding.verdict === 'not_tried', cells: [c.probes[name] ?? name, seen(name, finding), html`<span>${prose(finding.note)}</span>`] }))} />
    ${report.advice.length > 0 && html`<ul class="changes">${report.advice.map((text) => html`<li>${prose(text)}</li>`)}</ul>`}`;
}

/**
 * The verdict in a few words, or what was measured.
 * @param {string} probe
 * @param {Finding} finding
 */
function seen(probe, { verdict, right, tries, dialect, tokens_per_second: speed, tokens }) {
  const measured = probe === 'speed' ? speed : probe === 'context' ? tokens : undefined;
  if (measured !== undefined) return c.measured[probe === 'speed' ? 'speed' : 'context'](Math.round(measured));
  const counted = tries !== undefined && right !== undefined && right > 0 && right < tries ? ` ${c.ofTries(right, tries)}` : '';
  const kind = verdict === 'yes' ? 'good' : ['wrong', 'refused', 'failed'].includes(verdict) ? 'bad' : '';
  return html`<span class=${kind}>${c.verdicts[verdict] ?? verdict}</span>${counted}${dialect && html` <code>${dialect}</code>`}`;
}
