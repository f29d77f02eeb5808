// The audit: searched, exported, verified.

import { useLayoutEffect, useRef, useState } from '../../vendor/hooks.js';
import { CopyButton } from '../../components/copy.js';
import { download } from '../../state/download.js';
import { html } from '../../state/html.js';
import { prose } from '../../text/nodes.js';
import { audit, auditKey, exportAudit, rotateAuditKey, verifyAudit } from '../api.js';
import { foundOf } from '../parts/chain.js';
import { TextFile } from '../parts/file.js';
import { Fault, awaiting, useChange, useLoaded } from '../parts/loaded.js';
import { Records } from '../parts/records.js';
import { Sure } from '../parts/sure.js';
import { account, c, place, wide } from '../state.js';

/** @import { Entry, Verdict } from '../api.js' */

/** So many records are shown at a time. */
const PAGE = '50';

/** Where calls come from, besides the dialects of models. */
const ORIGINS = ['native', 'text', 'http', 'mcp', 'schedule', 'command_line', 'tool', 'library'];

/** The last time that the server reads. */
const LAST = '9999-12-30T23:59';

const FILTERS = /** @type {const} */ (['user', 'tool', 'call_id']);

export function Audit() {
  const asked = place.value.query.toString();
  const [filter, setFilter] = useState(() => filterOf(asked));
  // What the records below are of: not yet what is only typed.
  const [searched, setSearched] = useState(() => query(filterOf(asked)));
  const reads = useRef(0);
  const [entries, setEntries] = useState(/** @type {Entry[] | null} */ (null));
  const [next, setNext] = useState(/** @type {number | null} */ (null));
  const [fault, setFault] = useState('');
  const read = async (/** @type {Record<string, string>} */ wanted, /** @type {number | null} */ before) => {
    const mine = reads.current += 1;
    setSearched(wanted);
    try {
      const page = await awaiting(audit({ ...wanted, limit: PAGE, ...(before === null ? {} : { before: String(before) }) }));
      if (mine !== reads.current) return;
      setEntries((known) => (before === null ? page.records : [...(known ?? []), ...page.records]));
      setNext(page.next);
      setFault('');
    } catch (error) {
      if (mine === reads.current) setFault(/** @type {Error} */ (error).message);
    }
  };
  // Before the next key: what is typed at once would be forgotten otherwise.
  useLayoutEffect(() => {
    const wanted = filterOf(asked);
    setFilter(wanted);
    read(query(wanted), null);
  }, [asked]);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setFilter({ ...filter, [name]: event.target.value });
  return html`<${Verification} />
    <form class="bar" id="audit-filter" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); read(query(filter), null); }}>
      ${FILTERS.map((name) => html`<label key=${name}><span>${c.filters[name]}</span><input name=${name} autocomplete="off" spellcheck="false" value=${filter[name]} onInput=${set(name)} /></label>`)}
      <label><span>${c.since}</span><input type="datetime-local" max=${LAST} value=${filter.since} onInput=${set('since')} /></label>
      <label><span>${c.until}</span><input type="datetime-local" max=${LAST} value=${filter.until} onInput=${set('until')} /></label>
      <${Choice} name="only" label=${c.outcome} words=${c.kinds} value=${filter.only} onChange=${set('only')} />
      <${Choice} name="decision" label=${c.decision} words=${{ '': c.kinds[''], ...c.decisions }} value=${filter.decision} onChange=${set('decision')} />
      <label><span>${c.origin}</span><input name="origin" list="audit-origins" autocomplete="off" spellcheck="false" value=${filter.origin} onInput=${set('origin')} /></label>
      <datalist id="audit-origins">${ORIGINS.map((origin) => html`<option value=${origin}></option>`)}</datalist>
      <button type="submit" class="main">${c.search}</button>
      <${Export} query=${searched} />
    </form>
    <${Fault} text=${fault} onAgain=${() => read(searched, null)} />
    ${entries && html`<${Records} entries=${entries} whole=${wide.value} />`}
    ${next !== null && html`<p class="bar"><button type="button" id="audit-more" onClick=${() => read(searched, next)}>${c.older}</button></p>`}`;
}

/** @param {string} asked */
function filterOf(asked) {
  const given = new URLSearchParams(asked);
  return { user: given.get('user') ?? '', tool: given.get('tool') ?? '', call_id: given.get('call_id') ?? '', origin: '', decision: '', since: '', until: '', only: '' };
}

/**
 * What is asked of the server.
 * @param {ReturnType<typeof filterOf>} filter
 */
function query({ since, until, ...words }) {
  const times = Object.entries({ since, until }).filter(([, time]) => time !== '').map(([name, time]) => [name, new Date(time).toISOString()]);
  return Object.fromEntries([...Object.entries(words).filter(([, word]) => word.trim() !== '').map(([name, word]) => [name, word.trim()]), ...times]);
}

/** @param {{ name: string, label: string, words: Record<string, string>, value: string, onChange: (event: Event) => void }} properties */
function Choice({ name, label, words, value, onChange }) {
  return html`<label><span>${label}</span><select name=${name} value=${value} onChange=${onChange}>
    ${Object.entries(words).map(([one, word]) => html`<option value=${one} selected=${one === value}>${word}</option>`)}</select></label>`;
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
  const [given, setGiven] = useState({ heads: '', keys: '' });
  const { fault, busy, change } = useChange(() => {}, true);
  const verify = () => {
    setVerdict(null);
    const keys = given.keys.split(/\s+/).filter(Boolean);
    const others = given.heads.trim() === '' && keys.length === 0 ? null : { heads: given.heads, public_keys: keys };
    change(async () => setVerdict(await verifyAudit(others)), '');
  };
  return html`<p class="bar"><button type="button" id="audit-verify" disabled=${busy} onClick=${verify}>${c.verify}</button></p>
    <details id="audit-given"><summary>${c.otherHeads}</summary><p class="note">${c.otherHeadsAbout}</p>
      <p class="bar"><${TextFile} label=${c.headsFile} onText=${(/** @type {string} */ heads) => setGiven({ ...given, heads })} />
        <label class="grow"><span>${prose(c.publicKeys)}</span><input autocomplete="off" spellcheck="false" value=${given.keys} onInput=${(/** @type {any} */ event) => setGiven({ ...given, keys: event.target.value })} /></label></p></details>
    <${SigningKey} />
    <${Fault} text=${fault} />
    ${verdict && html`<div id="verdict" role="status" class=${verdict.whole ? 'card good' : 'card bad'}><p><b>${verdict.whole ? c.whole : c.notWhole}</b></p>
      <ul>${verdict.faults.map((text) => html`<li>${prose(c.headsUnread(text))}</li>`)}${verdict.chains.map((chain) => html`<li key=${chain.server}><code>${chain.server}</code>: ${prose(foundOf(chain.findings))}</li>`)}</ul></div>`}`;
}

/** The key that signs the heads, which is asked for when it is looked at. */
function SigningKey() {
  const [open, setOpen] = useState(false);
  return html`<details id="audit-key" onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary>${c.auditKey}</summary>${open && html`<${PublicKey} />`}</details>`;
}

function PublicKey() {
  const { value, fault, again } = useLoaded(auditKey);
  const { fault: refused, busy, change } = useChange(again);
  const key = value?.public_key;
  return html`<p class="note">${prose(c.auditKeyAbout)}</p>
    <${Fault} text=${fault || refused} onAgain=${fault ? again : undefined} />
    ${key === null && html`<p class="empty">${c.noAuditKey}</p>`}
    ${key && html`<p><code class="public-key">${key}</code> <${CopyButton} text=${() => key} /></p>`}
    ${key && account.value?.operator && html`<p class="bar"><${Sure} word=${c.rotateKey} question=${c.rotateKeyAsk} disabled=${busy} onSure=${() => change(rotateAuditKey, c.keyRotated)} /></p>`}`;
}
