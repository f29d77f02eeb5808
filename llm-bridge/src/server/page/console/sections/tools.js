// Tools: on and off, what they cost, how their calls went, and one to try.

import { useState } from '../../vendor/hooks.js';
import { serverNow } from '../../state/clock.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration, number } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { callFigures, personas, switchTool, toolsAs } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { LEVELS, account, c, wide } from '../state.js';
import { Check, Definitions } from './written.js';
import { Register } from './register.js';
import { ToolDialog } from './tool.js';

/** @import { Tool } from '../../state/types.d.ts' */

/** An hour in milliseconds. */
const HOUR = 3_600_000;

export function Tools() {
  const [level, setLevel] = useState('');
  const [persona, setPersona] = useState('');
  const isOwn = level === '' && persona === '';
  const tools = useLoaded(async () => ({ isOwn, list: await toolsAs(level, persona) }), [level, persona]);
  const [hours, setHours] = useState('');
  const calls = useLoaded(async () => {
    const { tools: all, counted_since: since } = await callFigures(hours === '' ? null : new Date(serverNow() - Number(hours) * HOUR).toISOString());
    return { of: new Map(all.map((one) => [one.tool, one])), since };
  }, [hours]);
  const { fault, busy, change } = useChange(tools.again);
  const [filter, setFilter] = useState('');
  const [shown, setShown] = useState(/** @type {string | null} */ (null));
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = (tools.value?.list ?? []).filter((tool) => words.every((word) => `${tool.name} ${tool.module} ${tool.title ?? ''} ${tool.description} ${tool.level} ${tool.effect}`.toLowerCase().includes(word)));
  const open = tools.value?.list.find(({ name }) => name === shown);
  return html`
    <p class="bar"><label class="grow"><span class="unseen">${t.filterTools}</span><input id="tool-filter" type="search" placeholder=${t.filterToolsAbout} value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /></label>
      <label><span>${c.countedSpan}</span><select id="counted-span" value=${hours} onChange=${(/** @type {any} */ event) => setHours(event.target.value)}>
        ${['', '1', '24', '168', '720'].map((span) => html`<option value=${span} selected=${span === hours}>${c.countedSpans[span]}</option>`)}</select></label>
      <${As} level=${level} onLevel=${setLevel} persona=${persona} onPersona=${setPersona} /></p>
    ${!isOwn && html`<p class="note" id="seen-as">${c.seenAs}</p>`}
    <${Fault} text=${tools.fault || fault} onAgain=${tools.fault ? tools.again : undefined} />
    <${Fault} text=${calls.fault} onAgain=${calls.again} />
    ${tools.value && html`<${Table} label=${c.sections.tools} empty=${t.noToolMatches}
      columns=${[c.tool, ...(wide.value ? [c.description, c.module] : []), c.level, c.effect, ...(wide.value ? [c.reads, c.sends, c.limits] : []), c.tokens, c.calls, c.failed, c.usually, c.state]}
      rows=${found.map((tool) => ({ key: tool.name, off: !tool.enabled, cells: cells(tool, tools.value?.isOwn === true) }))} />
      ${calls.value?.since && html`<p class="note" id="counted">${c.countedSince(exact(calls.value.since))}</p>`}`}
    <${Register} onRegistered=${tools.again} />
    <${Definitions} />
    <${Check} />
    ${open && tools.value?.isOwn && html`<${ToolDialog} key=${open.name} tool=${open} onChanged=${tools.again} onClose=${() => setShown(null)} />`}`;

  /** @param {Tool} tool @param {boolean} own whether it is as oneself that it is seen, and can be changed */
  function cells(tool, own) {
    const made = calls.value?.of.get(tool.name);
    return [
      html`${own ? html`<button type="button" class="link" aria-haspopup="dialog" onClick=${() => setShown(tool.name)}><code>${tool.name}</code></button>` : html`<code>${tool.name}</code>`}${!tool.enabled && tool.reason && html`<small>${prose(tool.reason)}</small>`}`,
      ...(wide.value ? [tool.description, tool.module] : []),
      tool.level,
      html`<span class="badge" data-value=${tool.effect}>${tool.effect}</span>`,
      ...(wide.value ? [(tool.reads ?? []).join(', ') || '–', tool.sends, limitsOf(tool)] : []),
      number(tool.tokens ?? 0),
      made ? number(made.calls) : '–',
      made ? html`<span class=${made.failed > 0 ? 'bad' : ''}>${number(made.failed)}</span>` : '–',
      typeof made?.median_ms === 'number' ? duration(made.median_ms) : '–',
      !own ? (tool.enabled ? c.on : c.off) : html`<label class="switch"><input type="checkbox" role="switch" aria-label=${c.isOn(tool.name)} checked=${tool.enabled} disabled=${busy}
        onChange=${(/** @type {any} */ event) => {
          const on = event.target.checked;
          event.target.checked = tool.enabled;
          change(() => switchTool(tool.name, on), on ? c.switchedOn(tool.name) : c.switchedOff(tool.name));
        }} /> ${tool.enabled ? c.on : c.off}</label>`,
    ];
  }
}

/** @param {Tool} tool */
function limitsOf({ limits }) {
  const [daily, apart] = [limits?.daily_limit.value ?? 0, limits?.cooldown_seconds.value ?? 0];
  return [daily > 0 && c.aDay(daily), apart > 0 && c.apart(apart)].filter(Boolean).join(', ') || '–';
}

/**
 * As whom the tools are seen.
 * @param {{ level: string, onLevel: (level: string) => void, persona: string, onPersona: (persona: string) => void }} properties
 */
function As({ level, onLevel, persona, onPersona }) {
  const all = useLoaded(personas);
  const own = LEVELS.indexOf(account.value?.level ?? '');
  return html`<label><span>${c.asLevel}</span><select id="as-level" value=${level} onChange=${(/** @type {any} */ event) => onLevel(event.target.value)}>
      <option value="">${c.asSelf}</option>${LEVELS.slice(0, own + 1).map((one) => html`<option value=${one} selected=${one === level}>${one}</option>`)}</select></label>
    ${all.value && all.value.length > 0 && html`<label><span>${c.persona}</span><select id="as-persona" value=${persona} onChange=${(/** @type {any} */ event) => onPersona(event.target.value)}>
      <option value="">${c.noPersona}</option>${all.value.map(({ name }) => html`<option value=${name} selected=${name === persona}>${name}</option>`)}</select></label>`}`;
}
