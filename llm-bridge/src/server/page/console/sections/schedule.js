// Scheduled calls: when they are made, as whom, and how the last one went.

import { html } from '../../state/html.js';
import { oneLine } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { visible } from '../../text/visible.js';
import { audit, jobs, removeJob } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Records } from '../parts/records.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { c, to, wide } from '../state.js';

/** What is scheduled; where there is room, beside the calls that were made by it. */
export const Schedule = () => html`<div class="parts"><div><${Jobs} /></div>${wide.value && html`<${Made} />`}</div>`;

function Made() {
  const last = useLoaded(async () => (await audit({ origin: 'schedule', limit: '20' })).records);
  return html`<div><h2>${c.lastCalls}</h2><${Fault} text=${last.fault} onAgain=${last.again} />${last.value && html`<${Records} entries=${last.value} />`}</div>`;
}

function Jobs() {
  const all = useLoaded(jobs);
  const { fault, busy, change } = useChange(all.again);
  return html`<${Fault} text=${all.fault || fault} onAgain=${all.fault ? all.again : undefined} />
    ${all.value && html`<${Table} label=${c.sections.schedule} empty=${c.noJobs} columns=${[c.tool, c.arguments, c.user, c.when, c.next, c.last, c.actions]}
      rows=${all.value.map((job) => ({ key: job.id, cells: [
        html`<code>${job.tool}</code>`, html`<code>${oneLine(visible(JSON.stringify(job.arguments)), 300)}</code>`, job.user, html`<code>${job.cron}</code> ${job.time_zone}`, exact(job.next_run),
        job.last_run ? html`<a class=${job.last_run.success ? 'good' : 'bad'} href=${to('audit', { call_id: job.last_run.call_id })}>${exact(job.last_run.at)}</a>${job.last_run.error && html`<small>${prose(job.last_run.error)}</small>`}` : c.never,
        html`<${Sure} word=${c.remove} title=${c.removeWhat(job.tool)} question=${c.removeAsk(job.tool)} disabled=${busy} onSure=${() => change(() => removeJob(job.id), c.removed(job.tool))} />`,
      ] }))} />`}`;
}
