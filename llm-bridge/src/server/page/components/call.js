// The card of one tool call.

import { useEffect, useLayoutEffect, useState } from '../vendor/hooks.js';
import { began } from '../state/answer.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { isAdmin } from '../state/server.js';
import { account } from '../state/store.js';
import { duration, moment, oneLine } from '../text/format.js';
import { linked } from '../text/nodes.js';
import { visible } from '../text/visible.js';
import { Approval } from './approval.js';
import { CopyButton } from './copy.js';
import { Icon } from './icon.js';
import { later } from './later.js';
import { ResultView } from './parts.js';

/** @import { CallPart } from '../state/types.d.ts' */

export const QuestionForm = later(async () => (await import('../dialogs/question.js')).QuestionForm, () => {});

const MARKS = /** @type {const} */ ({ ok: 'done', failed: 'failed', cancelled: 'cancelled' });

/** @param {{ call: CallPart, times: number }} properties */
export function CallCard({ call, times }) {
  const { state } = call;
  const runs = state === 'running' || state === 'writing';
  const asks = runs && Boolean(call.approval || call.question);
  const [open, setOpen] = useState(/** @type {boolean | null} */ (null));
  // Nobody should allow what he has not seen.
  const shown = open ?? asks;
  useLayoutEffect(() => {
    if (asks) setOpen(true);
  }, [asks]);
  const line = statusLine(call);
  return html`<div>
    <details class="call" data-name=${call.name} data-state=${runs ? 'running' : state} open=${shown}
      onToggle=${(/** @type {any} */ event) => { if (event.target.open !== shown) setOpen(event.target.open); }}>
      <summary>
        <span class="call-state">${runs ? html`<span class="spinner"></span>` : html`<${Icon} name=${MARKS[state]} />`}<span class="unseen">${t.states[state]}</span></span>
        <span class="call-head"><code class="call-name">${call.name}</code>${times > 1 && html`<span class="count" title=${t.equalCalls(times)}>× ${times}</span>`}</span>
        <span class="call-brief">${argumentsBrief(call)}</span>
        <${Time} call=${call} state=${state} />
        <span class="chevron"><${Icon} name="chevron" /></span>
        ${line && html`<span class="call-line">${line}</span>`}
        ${runs && typeof call.progress === 'number' && html`<progress max="1" value=${Math.min(1, Math.max(0, call.progress))} aria-label=${t.progress}></progress>`}
      </summary>
      ${asks && html`<div class="call-ask" key=${call.question?.id ?? call.approval}>
        ${call.question ? html`<${QuestionForm} question=${call.question} call=${call} />` : html`<${Approval} id=${call.approval} reason=${call.reason} call=${call} />`}
      </div>`}
      ${shown && html`<${Body} call=${call} />`}
    </details>
    ${authorizeAt(call) && html`<p class="call-said"><a href=${authorizeAt(call)} target="_blank" rel="noopener">${t.authorize}</a></p>`}
    ${call.said && html`<p class="call-said">${linked(call.said)}</p>`}
    <div class="call-parts">${call.parts?.map((part, index) => html`<${ResultView} key=${index} part=${part} text=${part.text} />`)}</div>
  </div>`;
}

/** @param {{ call: CallPart }} properties */
function Time({ call }) {
  const { state, duration_ms: ms } = call;
  const runs = state === 'running' || state === 'writing';
  const [, tick] = useState(0);
  const [seen] = useState(() => began(call));
  useEffect(() => {
    if (!runs) return undefined;
    const clock = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(clock);
  }, [runs]);
  const waited = Date.now() - (call.since ?? seen);
  const text = runs ? (waited < 950 ? t.states[state] : `${Math.round(waited / 1000)} s`)
    : [state === 'ok' ? null : t.states[state], typeof ms === 'number' ? duration(ms) : null].filter(Boolean).join(' · ') || t.states.ok;
  return html`<span class="call-time">${text}</span>`;
}

/** @param {{ call: CallPart }} properties */
function Body({ call }) {
  const { arguments: args, asked_for: before, result, error, dialect, side_effects: effects = [], retry_at: retry } = call;
  return html`<div class="call-body">
    <${Block} title=${before ? t.argumentsChanged : t.arguments} value=${args} />
    <${Block} title=${t.askedFor} value=${before} />
    ${error && html`<${Block} title=${t.error} value=${error} />`}
    <${Block} title=${t.result} value=${result} />
    ${effects.length > 0 && html`<div class="block"><span class="block-title">${t.sideEffects}</span><ul class="side-effects">${effects.map((effect) => html`<li>${visible(effect)}</li>`)}</ul></div>`}
    ${retry && html`<p class="call-note retry-at">${t.retryAt(moment(retry))}</p>`}
    ${dialect && dialect !== 'native' && html`<p class="call-note">${t.writtenAsText(dialect)}</p>`}
    <${RecordOf} call=${call} />
  </div>`;
}

/**
 * By what the record of a call is found in the audit.
 * @param {{ call: CallPart }} properties
 */
function RecordOf({ call: { id, state } }) {
  if (state === 'writing' || state === 'running') return null;
  const who = account.value;
  return html`<p class="call-note call-record">${t.record} ${who && isAdmin(who) ? html`<a href=${`admin#audit?${new URLSearchParams({ call_id: id })}`}><code>${id}</code></a>` : html`<code>${id}</code>`}</p>`;
}

/** @param {{ title: string, value: unknown }} properties */
export function Block({ title, value }) {
  if (value === undefined || value === null) return null;
  const text = pretty(value);
  return html`<div class="block">
    <div class="block-head"><span class="block-title">${title}</span><${CopyButton} text=${() => text} /></div>
    ${fields(value) ?? html`<pre tabindex="0" role="group" aria-label=${title}>${text === '' ? t.empty : visible(text)}</pre>`}
  </div>`;
}

/** Names and values read better than JSON, where no value has more inside. */
const MOST_FIELDS = 24;

/** @param {unknown} value */
function fields(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const entries = Object.entries(value);
  if (entries.length === 0 || entries.length > MOST_FIELDS || entries.some(([, inner]) => typeof inner === 'object' && inner !== null)) return null;
  return html`<dl class="fields" tabindex="0">${entries.map(([name, inner]) => html`<dt>${visible(name)}</dt><dd>${inner === null ? html`<i>null</i>` : visible(String(inner))}</dd>`)}</dl>`;
}

/** @param {CallPart} call */
function statusLine({ state, message, error, result, approval, question }) {
  if (state === 'running' && question) return t.waitingForAnswer;
  if (state === 'running') return approval ? t.waitingForApproval : (message ?? '');
  if (state === 'failed') return oneLine(error ?? '', 400);
  if (state !== 'ok' || result === undefined || result === null) return '';
  return oneLine(typeof result === 'string' ? result : JSON.stringify(result));
}

/**
 * The page of this server on which the user lets it into the account that the call needs. Another's address in an error is none.
 * @param {CallPart} call
 */
function authorizeAt({ state, error }) {
  // A long error has no such address, and searching it would take long.
  const found = state === 'failed' ? /https?:\/\/[^\s<>"]+\/connect\/[\w-]+/.exec((error ?? '').slice(0, 4096))?.[0] : undefined;
  return found && URL.canParse(found) && new URL(found).origin === location.origin ? found : null;
}

/** @param {CallPart} call */
function argumentsBrief({ arguments: args }) {
  if (args === null || args === undefined) return '';
  if (typeof args !== 'object') return oneLine(visible(String(args)));
  return oneLine(visible(Object.entries(args).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ')));
}

/** @param {unknown} value */
function pretty(value) {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  // Many tools return JSON as text.
  if (!/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}
