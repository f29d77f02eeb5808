// Where tools come from besides this server: modules and MCP servers, with what has changed there.

import { html } from '../../state/html.js';
import { prose } from '../../text/nodes.js';
import * as api from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { account, c } from '../state.js';
import { ConnectedAccounts } from './connected.js';

/** @import { Remote } from '../api.js' */

export function Servers() {
  const modules = useLoaded(api.modules);
  const servers = useLoaded(api.mcpServers);
  const { fault, busy, change } = useChange(() => { modules.again(); servers.again(); });
  const operator = account.value?.operator === true;
  const accept = (/** @type {'modules' | 'mcp-servers'} */ kind) => (/** @type {Remote} */ remote) => change(() => api.accept(kind, remote.name, remote.digest ?? ''), c.accepted(remote.name));
  return html`
    <p class="bar"><button type="button" disabled=${busy} onClick=${() => { modules.again(); servers.again(); }}>${c.lookAgain}</button>
      ${operator && html`<button type="button" id="refresh-tools" disabled=${busy} onClick=${() => change(api.refresh, c.refreshed)}>${c.refresh}</button>`}</p>
    ${!operator && html`<p class="note">${c.forOperators}</p>`}
    <${Fault} text=${modules.fault || servers.fault || fault} />
    <div class="parts">
      <div><h2>${c.modulesTitle}</h2><${List} remotes=${modules.value} empty=${c.noModules} busy=${busy} onAccept=${accept('modules')} /></div>
      <div><h2>${c.mcpServers}</h2><${List} remotes=${servers.value} empty=${c.noMcpServers} busy=${busy} onAccept=${accept('mcp-servers')} /></div>
      <${ConnectedAccounts} />
    </div>`;
}

/** @param {{ remotes: Remote[] | null, empty: string, busy: boolean, onAccept: (remote: Remote) => void }} properties */
function List({ remotes, empty, busy, onAccept }) {
  if (!remotes) return null;
  if (remotes.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<ul class="cards">${remotes.map((remote) => html`<li class="card remote" key=${remote.name} data-name=${remote.name}>
    <h3><code>${remote.name}</code> <span class="badge">${c.toolsOf(remote.tools)}</span>${remote.pinned && html` <span class="badge">${c.pinned}</span>`}</h3>
    <dl class="fields">
      <dt>${c.state}</dt><dd class=${remote.error || remote.breaker === 'open' ? 'bad' : ''}>${[remote.state && c.states[remote.state], c.breakers[remote.breaker] ?? remote.breaker].filter(Boolean).join(', ')}</dd>
      ${(remote.url ?? remote.address) && html`<dt>${c.address}</dt><dd>${remote.url ?? remote.address}</dd>`}
      ${remote.version && html`<dt>${c.version}</dt><dd>${remote.version}</dd>`}
    </dl>
    ${remote.error && html`<p class="bad">${prose(remote.error)}</p>`}
    ${[...(remote.faults ?? []).map(({ tool, message }) => `${tool}: ${message}`), ...(remote.duplicates ?? [])].map((text) => html`<p class="bad">${prose(text)}</p>`)}
    ${remote.changes && remote.changes.length > 0 && html`<h4>${remote.pinned ? c.offUntilAccepted : c.changedSince}</h4>
      <ul class="changes">${remote.changes.map(({ tool, parts }) => html`<li key=${tool}><code>${tool}</code>: ${parts.map((part) => c.parts[part] ?? part).join(', ')}
        ${(remote.differences ?? []).filter((one) => one.tool === tool).map((one) => html`<${Difference} key=${one.part} ...${one} />`)}</li>`)}</ul>
      <p class="bar"><${Sure} word=${c.accept} question=${c.acceptAsk(remote.name)} disabled=${busy} onSure=${() => onAccept(remote)} /></p>`}
  </li>`)}</ul>`;
}

/**
 * A part of a tool as it was accepted and as it is now.
 * @param {NonNullable<Remote['differences']>[number]} properties
 */
function Difference({ part, before, after }) {
  const word = c.parts[part] ?? part;
  const side = (/** @type {string} */ title, /** @type {string} */ text) => html`<div><h5>${title}</h5><pre tabindex="0" role="group" aria-label=${`${word}, ${title}`}>${text}</pre></div>`;
  return html`<details class="difference" open=${part !== 'new'}><summary>${word}</summary>
    <div class="sides">${part !== 'new' && side(c.asAccepted, before ?? c.notKept)}${side(c.asNow, after)}</div></details>`;
}
