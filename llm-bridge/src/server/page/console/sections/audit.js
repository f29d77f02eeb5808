// The audit: searched, exported, verified.

import { useEffect, useState } from '../../vendor/hooks.js';
import { download } from '../../state/download.js';
import { html } from '../../state/html.js';
import { audit, exportAudit, verifyAudit } from '../api.js';
import { Fault } from '../parts/loaded.js';
import { Records } from '../parts/records.js';
import { c, place } from '../state.js';

/** @import { Entry, Verdict } from '../api.js' */

/** So many records are shown at a time. */
const PAGE = '50';

const FILTERS = /** @type {const} */ (['user', 'tool', 'call_id']);

export function Audit() {
  const asked = place.value.query.toString();
  const [filter, setFilter] = useState(() => filterOf(asked));
  const [entries, setEntries] = useState(/** @type {Entry[] | null} */ (null));
  const [next, setNext] = useState(/** @type {number | null} */ (null));
  const [fault, setFault] = useState('');
  const read = async (/** @type {Record<string, string>} */ wanted, /** @type {number | null} */ before) => {
    try {
      const page = await audit({ ...wanted, limit: PAGE, ...(before === null ? {} : { before: String(before) }) });
      setEntries((known) => (before === null ? page.records : [...(known ?? []), ...page.records]));
      setNext(page.next);
      setFault('');
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    }
  };
  useEffect(() => {
    const wanted = filterOf(asked);
    setFilter(wanted);
    read(query(wanted), null);
  }, [asked]);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setFilter({ ...filter, [name]: event.target.value });
  return html`<${Verification} />
    <form class="bar" id="audit-filter" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); read(query(filter), null); }}>
      ${FILTERS.map((name) => html`<label key=${name}><span>${c.filters[name]}</span><input name=${name} autocomplete="off" spellcheck="false" value=${filter[name]} onInput=${set(name)} /></label>`)}
      <label><span>${c.since}</span><input type="datetime-local" value=${filter.since} onInput=${set('since')} /></label>
      <label><span>${c.until}</span><input type="datetime-local" value=${filter.until} onInput=${set('until')} /></label>
      <label><span>${c.outcome}</span><select value=${filter.only} onChange=${set('only')}>${Object.entries(c.kinds).map(([value, word]) => html`<option value=${value} selected=${value === filter.only}>${word}</option>`)}</select></label>
      <button type="submit" class="main">${c.search}</button>
      <${Export} query=${query(filter)} />
    </form>
    <${Fault} text=${fault} />
    ${entries && html`<${Records} entries=${entries} />`}
    ${next !== null && html`<p class="bar"><button type="button" id="audit-more" onClick=${() => read(query(filter), next)}>${c.older}</button></p>`}`;
}

/** @param {string} asked */
function filterOf(asked) {
  const given = new URLSearchParams(asked);
  return { user: given.get('user') ?? '', tool: given.get('tool') ?? '', call_id: given.get('call_id') ?? '', since: '', until: '', only: '' };
}

/**
 * What is asked of the server.
 * @param {ReturnType<typeof filterOf>} filter
 */
function query({ since, until, ...words }) {
  const times = Object.entries({ since, until }).filter(([, time]) => time !== '').map(([name, time]) => [name, new Date(time).toISOString()]);
  return Object.fromEntries([...Object.entries(words).filter(([, word]) => word.trim() !== '').map(([name, word]) => [name, word.trim()]), ...times]);
}

/** @param {{ query: Record<string, string> }} properties */
function Export({ query: wanted }) {
  const [state, setState] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      download(await exportAudit(wanted), 'audit.jsonl');
      setState(c.exported);
    } catch (error) {
      setState(/** @type {Error} */ (error).message);
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" id="audit-export" disabled=${busy} onClick=${run}>${c.export}</button> <span role="status" id="audit-exported">${state}</span>`;
}

function Verification() {
  const [verdict, setVerdict] = useState(/** @type {Verdict | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState('');
  const run = async () => {
    setBusy(true);
    try {
      setVerdict(await verifyAudit());
      setFault('');
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    } finally {
      setBusy(false);
    }
  };
  return html`<p class="bar"><button type="button" id="audit-verify" disabled=${busy} onClick=${run}>${c.verify}</button></p>
    <${Fault} text=${fault} />
    ${verdict && html`<div id="verdict" role="status" class=${verdict.whole ? 'card good' : 'card bad'}><p><b>${verdict.whole ? c.whole : c.notWhole}</b></p>
      <ul>${verdict.faults.map((text) => html`<li>${text}</li>`)}${verdict.chains.map((chain) => html`<li key=${chain.server}><code>${chain.server}</code>: ${chain.found}</li>`)}</ul></div>`}`;
}
