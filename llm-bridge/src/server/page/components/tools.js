// The panel with the tools: a column on wide screens, a drawer on narrow ones.

import { useLayoutEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { loadTools } from '../state/server.js';
import { dialog, tools, toolsFailure, toolsKnown, toolsOpen } from '../state/store.js';
import { prose } from '../text/nodes.js';
import { Icon } from './icon.js';

/** @import { Tool } from '../state/types.d.ts' */

/** Closes the panel and puts the focus back where it was opened. */
export function closeTools() {
  toolsOpen.value = false;
  document.getElementById('tools-toggle')?.focus();
}

/** @param {{ covers: boolean }} properties whether it lies over the chat */
export function ToolPanel({ covers }) {
  const [filter, setFilter] = useState('');
  const open = toolsOpen.value;
  useLayoutEffect(() => {
    if (!open) return;
    loadTools();
    // A focused field would bring up the keyboard of a phone.
    document.getElementById(covers ? 'tools-close' : 'tools-filter')?.focus();
  }, [open]);
  const all = tools.value;
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((tool) => matches(tool, words));
  const failure = toolsFailure.value;
  return html`<aside id="tools" aria-labelledby="tools-title" inert=${!open} hidden=${!open}>
    <div class="tools-head">
      <h2 id="tools-title">${t.tools}</h2>
      <p id="tools-summary">${failure ? '' : t.ready(all.filter((tool) => tool.enabled).length, all.length)}</p>
      <button id="tools-close" class="quiet" type="button" aria-label=${t.closeTools} onClick=${closeTools}><${Icon} name="close" /></button>
      <label class="unseen" for="tools-filter">${t.filterTools}</label>
      <input id="tools-filter" type="search" placeholder=${t.filterToolsAbout} autocomplete="off" spellcheck="false" value=${filter}
        onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} />
      <button id="documents-open" type="button" aria-haspopup="dialog" onClick=${() => { dialog.value = 'documents'; }}>
        <${Icon} name="document" /><span>${t.documentsOpen}</span>
      </button>
    </div>
    <div id="tools-list">
      ${failure ? html`<p class="empty" role="alert">${failure}</p>`
        : found.length === 0 ? toolsKnown.value && html`<p class="empty">${all.length > 0 ? t.noToolMatches : t.noTools}</p>`
          : open && [...Map.groupBy(found, (tool) => tool.module)].map(([module, members]) => html`<section key=${module} aria-label=${t.module(module)}>
              <h3>${module}<span class="count">${members.length}</span></h3>
              <ul>${members.map((tool) => html`<${Entry} key=${tool.name} tool=${tool} />`)}</ul>
            </section>`)}
    </div>
  </aside>`;
}

/**
 * @param {Tool} tool
 * @param {string[]} words
 */
function matches(tool, words) {
  const text = [tool.name, tool.title, tool.module, tool.description].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** @param {{ tool: Tool }} properties */
function Entry({ tool }) {
  return html`<li class=${tool.enabled ? 'tool' : 'tool off'}>
    <div class="tool-head">
      <span class="dot" title=${tool.enabled ? t.toolReady : t.toolOff}></span>
      <code class="tool-name">${tool.name}</code>
      <${Badge} kind="level" value=${tool.level} title=${t.needsLevel(tool.level)} />
      <${Badge} kind="effect" value=${tool.effect} title=${t.effect(tool.effect)} />
      ${tool.deferred && html`<${Badge} kind="deferred" value=${t.deferred} title=${t.deferredAbout} />`}
    </div>
    ${tool.title && tool.title !== tool.name && html`<p class="tool-title">${tool.title}</p>`}
    <p class="tool-text">${prose(tool.description)}</p>
    ${!tool.enabled && html`<p class="tool-reason">${prose(t.offBecause(tool.reason))}</p>`}
    <${Details} tool=${tool} />
  </li>`;
}

/** @param {{ kind: string, value: string, title: string }} properties */
function Badge({ kind, value, title }) {
  return value ? html`<span class="badge" data-kind=${kind} data-value=${value} title=${title}>${value}</span>` : null;
}

/** @param {{ tool: Tool }} properties */
function Details({ tool }) {
  /** @type {[string, any][]} */
  const parameters = Object.entries(tool.parameters?.properties ?? {});
  if (parameters.length === 0 && !tool.source) return null;
  const required = new Set(tool.parameters?.required ?? []);
  return html`<details>
    <summary><span class="chevron"><${Icon} name="chevron" /></span><span>${t.parameters(parameters.length)}</span></summary>
    <dl>${parameters.map(([name, schema]) => html`
      <dt><code>${name}</code><span class="type">${[typeOf(schema), required.has(name) ? null : t.optional].filter(Boolean).join(', ')}</span></dt>
      <dd>${prose(schema.description)}</dd>`)}</dl>
    ${tool.source && html`<p class="tool-source">${tool.source}</p>`}
  </details>`;
}

/**
 * @param {any} schema
 * @returns {string}
 */
function typeOf(schema) {
  if (schema.enum) return schema.enum.map((/** @type {unknown} */ value) => JSON.stringify(value)).join(' | ');
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.map(typeOf).filter((/** @type {string} */ type) => type !== 'null').join(' | ');
  if (schema.type === 'array') return schema.items ? t.listOf(typeOf(schema.items)) : t.list;
  return [schema.type].flat().filter((type) => type && type !== 'null').join(' | ') || t.any;
}
