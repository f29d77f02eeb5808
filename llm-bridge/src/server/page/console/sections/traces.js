// A turn as it went: the spans of its trace, as a tree.

import { useLayoutEffect, useRef, useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration, number } from '../../text/format.js';
import { trace, traces } from '../api.js';
import { Fault, awaiting, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { account, c, place, to } from '../state.js';

/** @import { Span } from '../api.js' */

export function Traces() {
  const asked = place.value.query.get('id') ?? '';
  const [id, setId] = useState(asked);
  const [spans, setSpans] = useState(/** @type {Span[]} */ ([]));
  const [fault, setFault] = useState('');
  const reads = useRef(0);
  // What is asked for last is shown, whichever comes last.
  const read = async (/** @type {string} */ wanted) => {
    const mine = reads.current += 1;
    /** @type {[Span[], string]} */
    const [found, refusal] = wanted === '' ? [[], ''] : await awaiting(trace(wanted)).then((one) => [one.spans, ''], (error) => [[], error.message]);
    if (mine !== reads.current) return;
    setSpans(found);
    setFault(refusal);
  };
  useLayoutEffect(() => { setId(asked); read(asked); }, [asked]);
  const known = new Set(spans.map((span) => span.id));
  const begun = Math.min(...spans.map(({ began }) => Date.parse(began)));
  const whole = Math.max(1, ...spans.map(({ began, duration_ms: ms }) => Date.parse(began) - begun + ms));
  return html`<div class="parts"><div><form class="bar" id="trace-form" role="search" onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); read(id.trim()); }}>
      <label class="grow"><span>${c.traceId}</span><input autocomplete="off" spellcheck="false" value=${id} onInput=${(/** @type {any} */ event) => setId(event.target.value)} /></label>
      <button type="submit" class="main">${c.show}</button>
    </form>
    <${Fault} text=${fault} />
    <ul class="spans">${spans.filter(({ parent }) => parent === null || !known.has(parent)).map((span) => html`<${Node} key=${span.id} span=${span} spans=${spans} begun=${begun} whole=${whole} />`)}</ul></div>
    ${account.value?.operator ? html`<${Newest} />` : html`<p class="note">${c.tracesForOperators}</p>`}</div>`;
}

/** The traces that ended last. */
export function Newest() {
  const all = useLoaded(traces);
  return html`<div><h2>${c.newestTraces}</h2>
    <p class="bar"><button type="button" onClick=${all.again}>${c.lookAgain}</button></p>
    <${Fault} text=${all.fault} />
    ${all.value && html`<${Table} label=${c.newestTraces} empty=${c.noTraces} columns=${[c.time, c.whatWas, c.model, c.calls, c.took, c.outcome]}
      rows=${all.value.map(({ trace_id: id, name, model, calls, began, duration_ms: ms, failed }) => ({ key: id, cells: [
        exact(began),
        html`<a href=${to('traces', { id })}><code>${name}</code></a>`,
        model === null ? '–' : html`<code>${model}</code>`,
        number(calls),
        duration(ms),
        html`<span class=${failed ? 'bad' : 'good'}>${failed ? t.states.failed : t.states.ok}</span>`,
      ] }))} />`}</div>`;
}

/** @param {{ span: Span, spans: Span[], begun: number, whole: number }} properties */
function Node({ span, spans, begun, whole }) {
  const inner = spans.filter(({ parent }) => parent === span.id);
  const share = (/** @type {number} */ ms) => `${(ms / whole) * 100}%`;
  return html`<li>
    <details class="span"><summary><span class=${span.error === null ? 'span-name' : 'span-name bad'}>${span.name}</span><span class="span-time">${duration(span.duration_ms)}</span>
      <svg class="span-line" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect x=${share(Date.parse(span.began) - begun)} width=${share(Math.max(span.duration_ms, whole / 200))} height="4" /></svg></summary>
      ${span.error && html`<p class="bad">${span.error}</p>`}
      <pre tabindex="0" role="group" aria-label=${c.details}>${JSON.stringify(span.attributes, null, 2)}</pre></details>
    ${inner.length > 0 && html`<ul>${inner.map((one) => html`<${Node} key=${one.id} span=${one} spans=${spans} begun=${begun} whole=${whole} />`)}</ul>`}
  </li>`;
}
