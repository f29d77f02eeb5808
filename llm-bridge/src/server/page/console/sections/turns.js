// The turns that run: whose, of which model, what they do, and a way to stop one.

import { html } from '../../state/html.js';
import { number } from '../../text/format.js';
import { stopTurn, turns } from '../api.js';
import { Fault, useChange, useEvery, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { account, c, to, wide } from '../state.js';
import { Newest } from './traces.js';

/** @import { Turn } from '../api.js' */

/** How often it is looked for them, in milliseconds. */
const AGAIN = 2000;

/** Those that run; where there is room, beside those that ended last. */
export const Turns = () => html`<div class="parts"><div><${Running} /></div>${wide.value && account.value?.operator && html`<${Newest} />`}</div>`;

export function Running() {
  const all = useLoaded(turns);
  const { fault, busy, change } = useChange(all.again);
  useEvery(AGAIN, all.look);
  const stop = (/** @type {Turn} */ { id, server, user }) => change(() => stopTurn(id, server), server === null ? c.stopped(user) : c.stopsElsewhere(user, server));
  return html`<${Fault} text=${all.fault || fault} onAgain=${all.fault ? all.again : undefined} />
    ${all.value && html`<${Table} label=${c.sections.turns} empty=${c.noTurns} columns=${[c.user, c.model, c.runsNow, c.rounds, c.since, c.actions]}
      rows=${all.value.map((turn) => ({ key: `${turn.server ?? ''}/${turn.id}`, cells: [
        html`<b>${turn.user}</b>${turn.server !== null && html`<small>${c.onServer(turn.server)}</small>`}`,
        turn.model ? html`<code>${turn.model}</code>` : '–',
        turn.tools.length > 0 ? html`<code>${turn.tools.join(', ')}</code>` : c.modelAnswers,
        number(turn.rounds),
        exact(turn.since),
        html`<span class="row-buttons">${turn.trace_id && account.value?.operator && html`<a href=${to('traces', { id: turn.trace_id })}>${c.traceOf}</a>`}
          <${Sure} word=${c.stop} title=${c.stopWhat(turn.user)} question=${c.stopTurn(turn.user)} disabled=${busy} onSure=${() => stop(turn)} /></span>`,
      ] }))} />`}`;
}
