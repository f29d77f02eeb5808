// Records of the audit, the newest first.

import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration, oneLine } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { visible } from '../../text/visible.js';
import { c, to } from '../state.js';
import { exact } from './time.js';
import { Table } from './table.js';

/** @import { Entry } from '../api.js' */

/** @param {{ entries: Entry[], whole?: boolean }} properties `whole` where there is room for what was asked */
export function Records({ entries, whole = false }) {
  return html`<${Table} label=${c.records} empty=${c.noRecords} columns=${[c.time, c.user, ...(whole ? [c.level, c.origin] : []), c.tool, ...(whole ? [c.arguments] : []), c.outcome, c.took, c.details]}
    rows=${entries.map(({ server, seq, record }) => ({ key: `${server}/${seq}`, cells: [
      exact(record.ts),
      html`${record.user}${record.via && html` <small>${c.via(record.via)}</small>`}`,
      ...(whole ? [record.level, record.origin?.text ?? record.origin] : []),
      html`<code>${record.tool}</code>`,
      ...(whole ? [record.arguments === undefined ? '–' : html`<code>${oneLine(visible(JSON.stringify(record.arguments)), 300)}</code>`] : []),
      outcome(record),
      typeof record.duration_ms === 'number' ? duration(record.duration_ms) : '–',
      html`<details class="record"><summary>${c.show}</summary>
        <pre tabindex="0" role="group" aria-label=${c.details}>${JSON.stringify(record, null, 2)}</pre>
        <p><a href=${to('audit', { call_id: record.call_id })}>${c.allOfCall}</a> · <a href=${to('traces', { id: record.call_id })}>${c.traceOf}</a></p></details>`,
    ] }))} />`;
}

/** @param {Entry['record']} record */
function outcome({ phase, success, error, error_message: message, decision }) {
  const decided = decision && html`<small>${c.decisions[decision.verdict] ?? decision.verdict}${decision.by && ` (${decision.by})`}</small>`;
  if (phase !== 'outcome') return html`${c.intent} ${decided}`;
  return success ? html`<span class="good">${t.states.ok}</span> ${decided}` : html`<span class="bad">${error ?? t.states.failed}</span> ${decided}${message && html`<small>${prose(message)}</small>`}`;
}
