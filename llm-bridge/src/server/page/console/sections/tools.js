// Tools: on and off, what they cost, how their calls went, and one to try.

import { useState } from '../../vendor/hooks.js';
import { tools as listTools } from '../../state/api.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration, number } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { audit, switchTool } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';
import { Check, Definitions } from './written.js';
import { Register } from './register.js';
import { ToolDialog } from './tool.js';

/** @import { Tool } from '../../state/types.d.ts' */
/** @import { Entry } from '../api.js' */

/** So many records are counted: of as many calls as half of them. */
const COUNTED = 1000;

export function Tools() {
  const tools = useLoaded(listTools);
  const calls = useLoaded(async () => statistics((await audit({ limit: String(COUNTED) })).records));
  const { fault, busy, change } = useChange(tools.again);
  const [filter, setFilter] = useState('');
  const [shown, setShown] = useState(/** @type {string | null} */ (null));
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (tools.value ?? []).filter((tool) => words.every((word) => `${tool.name} ${tool.title ?? ''} ${tool.description} ${tool.level} ${tool.effect}`.toLowerCase().includes(word)));
  const open = tools.value?.find(({ name }) => name === shown);
  return html`
    <p class="bar"><label class="grow"><span class="unseen">${t.filterTools}</span><input id="tool-filter" type="search" placeholder=${t.filterToolsAbout} value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /></label></p>
    <${Fault} text=${tools.fault || fault} onAgain=${tools.fault ? tools.again : undefined} />
    ${calls.fault && html`<p class="note">${calls.fault}</p>`}
    ${tools.value && html`<${Table} label=${c.sections.tools} empty=${t.noToolMatches}
      columns=${[c.tool, c.level, c.effect, c.tokens, c.calls, c.failed, c.usually, c.state]}
      rows=${found.map((tool) => ({ key: tool.name, off: !tool.enabled, cells: cells(tool) }))} />
      ${calls.value && html`<p class="note">${c.countedOf(number(COUNTED))}</p>`}`}
    <${Register} onRegistered=${tools.again} />
    <${Definitions} />
    <${Check} />
    ${open && html`<${ToolDialog} key=${open.name} tool=${open} onChanged=${tools.again} onClose=${() => setShown(null)} />`}`;

  /** @param {Tool} tool */
  function cells(tool) {
    const made = calls.value?.get(tool.name);
    return [
      html`<button type="button" class="link" aria-haspopup="dialog" onClick=${() => setShown(tool.name)}><code>${tool.name}</code></button>${!tool.enabled && tool.reason && html`<small>${prose(tool.reason)}</small>`}`,
      tool.level,
      html`<span class="badge" data-value=${tool.effect}>${tool.effect}</span>`,
      number(tool.tokens ?? 0),
      made ? number(made.calls) : '–',
      made ? html`<span class=${made.failed > 0 ? 'bad' : ''}>${number(made.failed)}</span>` : '–',
      made?.median === undefined ? '–' : duration(made.median),
      html`<label class="switch"><input type="checkbox" role="switch" aria-label=${c.isOn(tool.name)} checked=${tool.enabled} disabled=${busy}
        onChange=${(/** @type {any} */ event) => {
          const on = event.target.checked;
          event.target.checked = tool.enabled;
          change(() => switchTool(tool.name, on), on ? c.switchedOn(tool.name) : c.switchedOff(tool.name));
        }} /> ${tool.enabled ? c.on : c.off}</label>`,
    ];
  }
}

/**
 * How the calls of each tool went.
 * @param {Entry[]} records
 */
function statistics(records) {
  // One that waits for a person is made again when that has answered.
  const ended = records.map(({ record }) => record).filter(({ phase, error }) => phase === 'outcome' && !error?.endsWith('_pending'));
  return new Map([...Map.groupBy(ended, ({ tool }) => tool)].map(([tool, calls]) => {
    const times = calls.flatMap(({ duration_ms: ms }) => (typeof ms === 'number' ? [ms] : [])).sort((a, b) => a - b);
    return [tool, { calls: calls.length, failed: calls.filter(({ success }) => !success).length, median: times[Math.floor(times.length / 2)] }];
  }));
}
