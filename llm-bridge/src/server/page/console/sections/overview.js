// Whether all is well: the server, its models, what runs, waits and has failed.

import { html } from '../../state/html.js';
import * as api from '../../state/api.js';
import { prose } from '../../text/nodes.js';
import { audit, jobs, letters, mcpServers, modules, ready } from '../api.js';
import { Fault, useLoaded } from '../parts/loaded.js';
import { Records } from '../parts/records.js';
import { account, c, to } from '../state.js';
import { Waiting } from './approvals.js';
import { Backup } from './backup.js';
import { Restore } from './restore.js';
import { Running } from './turns.js';

export function Overview() {
  const server = useLoaded(ready);
  const health = useLoaded(api.health);
  const models = useLoaded(api.models);
  const tools = useLoaded(api.tools);
  const waiting = useLoaded(api.approvals);
  const remotes = useLoaded(async () => (await Promise.all([modules(), mcpServers()])).flat());
  const undelivered = useLoaded(letters);
  const scheduled = useLoaded(jobs);
  const failures = useLoaded(async () => (await audit({ only: 'failure', limit: '5' })).records);
  const all = [server, health, models, tools, waiting, remotes, undelivered, scheduled, failures];
  const ill = (remotes.value ?? []).filter((remote) => remote.error || remote.breaker === 'open');
  const failed = (scheduled.value ?? []).filter(({ last_run: last }) => last?.success === false);
  const on = tools.value?.filter((tool) => tool.enabled).length ?? 0;
  return html`
    <p class="bar"><button type="button" id="overview-again" onClick=${() => all.forEach(({ again }) => again())}>${c.lookAgain}</button></p>
    <dl class="facts">
      <${Fact} id="fact-server" name=${c.server} good=${server.fault ? false : server.value ? true : undefined} text=${server.fault || (server.value && c.runs)} />
      <${Fact} id="fact-models" name=${c.modelServer} good=${models.fault ? false : models.value ? true : undefined}
        text=${models.fault || (models.value && html`<a href=${to('models')}>${`${health.value?.upstream ?? ''}: ${c.models(models.value.length)}`}</a>`)} />
      <${Fact} id="fact-tools" name=${c.sections.tools} good=${tools.fault ? false : undefined}
        text=${tools.fault || (tools.value && html`<a href=${to('tools')}>${c.toolsOn(on, tools.value.length)}</a>`)} />
      <${Fact} id="fact-waiting" name=${c.sections.approvals} good=${waiting.fault ? false : undefined}
        text=${waiting.fault || (waiting.value && html`<a href=${to('approvals')}>${c.callsWait(waiting.value.length)}</a>`)} />
      <${Fact} id="fact-servers" name=${c.sections.servers} good=${remotes.fault || ill.length > 0 ? false : remotes.value?.length ? true : undefined}
        text=${remotes.fault || (remotes.value && html`<a href=${to('servers')}>${ill.length > 0 ? c.remotesIll(ill.map(({ name }) => name).join(', ')) : c.remotes(remotes.value.length)}</a>`)} />
      <${Fact} id="fact-schedule" name=${c.sections.schedule} good=${scheduled.fault || failed.length > 0 ? false : scheduled.value?.length ? true : undefined}
        text=${scheduled.fault || (scheduled.value && html`<a href=${to('schedule')}>${failed.length > 0 ? c.jobsFailed(failed.map(({ tool }) => tool).join(', ')) : c.jobs(scheduled.value.length)}</a>`)} />
      <${Fact} id="fact-letters" name=${c.sections.webhooks} good=${undelivered.fault || undelivered.value?.length ? false : undefined}
        text=${undelivered.fault || (undelivered.value && html`<a href=${to('webhooks')}>${c.lettersLie(undelivered.value.length)}</a>`)} />
    </dl>
    <div class="parts">
      <div><h2>${c.sections.turns}</h2><${Running} /></div>
      <div><h2>${c.waitingCalls}</h2><${Waiting} /></div>
      <div><h2>${c.lastFailures}</h2><${Fault} text=${failures.fault} />${failures.value && html`<${Records} entries=${failures.value} />`}</div>
      ${account.value?.operator && html`<${Backup} /><${Restore} />`}
    </div>`;
}

/** @param {{ id: string, name: string, text: any, good?: boolean }} properties */
function Fact({ id, name, text, good }) {
  return html`<div id=${id}><dt>${name}</dt><dd class=${good === undefined ? '' : good ? 'good' : 'bad'}>${good !== undefined && html`<span class="unseen">${good ? c.well : c.notWell}: </span>`}${typeof text === 'string' ? prose(text) : text || '…'}</dd></div>`;
}
