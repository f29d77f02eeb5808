// One tool: what it is, its last calls, and a form to try it.

import { useEffect, useRef, useState } from '../../vendor/hooks.js';
import { Approval } from '../../components/approval.js';
import { Dialog } from '../../components/dialog.js';
import { approvals } from '../../state/api.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { duration } from '../../text/format.js';
import { visible } from '../../text/visible.js';
import { audit, execute, limitTool, removeTool } from '../api.js';
import { Fields, valuesOf } from '../parts/form.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Records } from '../parts/records.js';
import { Sure } from '../parts/sure.js';
import { account, c } from '../state.js';

/** @import { Tool } from '../../state/types.d.ts' */

/** How often it is looked whether a call that is tried waits for a person, in milliseconds. */
const AGAIN = 1000;

/** The source of tools that were registered at run time, and can be removed. */
const REGISTERED = 'host';

/** @param {{ tool: Tool, onChanged: () => void, onClose: () => void }} properties */
export function ToolDialog({ tool, onChanged, onClose }) {
  const { fault, busy, change } = useChange(onChanged);
  const last = useLoaded(() => audit({ tool: tool.name, limit: '20' }));
  return html`<${Dialog} id="tool" title=${tool.name} onClose=${onClose}>
    <p>${tool.description}</p>
    <dl class="fields">
      <dt>${c.from}</dt><dd>${tool.source}</dd>
      ${tool.version && html`<dt>${c.version}</dt><dd>${tool.version}</dd>`}
      <dt>${c.level}</dt><dd>${tool.level}</dd>
      ${!tool.enabled && html`<dt>${c.off}</dt><dd>${tool.reason}</dd>`}
    </dl>
    ${tool.source === REGISTERED && html`<p class="bar"><${Sure} word=${c.remove} title=${c.removeWhat(tool.name)} question=${c.removeAsk(tool.name)} disabled=${busy} onSure=${() => change(() => removeTool(tool.name), c.removed(tool.name))} /></p>
      <${Fault} text=${fault} />`}
    ${tool.limits && html`<h3 id="limits-title">${c.limits}</h3><${Limits} name=${tool.name} limits=${tool.limits} onChanged=${onChanged} />`}
    ${tool.enabled && html`<h3>${c.tryIt}</h3><${Try} tool=${tool} onCalled=${last.again} />`}
    <h3>${c.lastCalls}</h3>
    <${Fault} text=${last.fault} />
    ${last.value && html`<${Records} entries=${last.value.records} />`}
  </${Dialog}>`;
}

/**
 * How often a user may call it: as the tool has it, or as an admin has set it.
 * @param {{ name: string, limits: NonNullable<Tool['limits']>, onChanged: () => void }} properties
 */
function Limits({ name, limits, onChanged }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const { fault, busy, change } = useChange(onChanged);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!form.current?.reportValidity()) return;
    const given = [...new FormData(form.current)].filter(([, text]) => text !== '').map(([limit, text]) => [limit, Number(text)]);
    change(() => limitTool(name, Object.fromEntries(given)), c.limitsSet(name));
  };
  const field = (/** @type {'daily_limit' | 'cooldown_seconds'} */ limit) => {
    const { value, from, own } = limits[limit];
    return html`<label class="ask-field"><span>${c.limit[limit]}</span>
      <input type="number" name=${limit} min="0" max="4294967295" step="1" key=${`${from} ${value}`} defaultValue=${from === 'admin' ? value : ''} placeholder=${c.ownLimit(own)} />
      <small>${from === 'admin' ? c.limitByAdmin(own) : c.limitByTool}</small></label>`;
  };
  return html`<form id="limits" aria-labelledby="limits-title" ref=${form} onSubmit=${submit}>
    ${field('daily_limit')}${field('cooldown_seconds')}
    <p><small>${c.limitsAbout}</small></p>
    <p class="bar"><button type="submit" disabled=${busy}>${c.setLimits}</button></p>
    <${Fault} text=${fault} />
  </form>`;
}

/** @param {{ tool: Tool, onCalled: () => void }} properties */
function Try({ tool, onCalled }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [running, setRunning] = useState(/** @type {AbortController | null} */ (null));
  const [reply, setReply] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  useEffect(() => () => running?.abort(), [running]);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!form.current) return;
    const stop = new AbortController();
    try {
      const values = valuesOf(form.current, tool.parameters);
      setFault('');
      setReply(null);
      setRunning(stop);
      setReply(await execute(tool.name, values, stop.signal));
    } catch (error) {
      if (!stop.signal.aborted) setFault(/** @type {Error} */ (error).message);
    } finally {
      setRunning(null);
      onCalled();
    }
  };
  return html`<form id="try" ref=${form} novalidate onSubmit=${submit}>
    <${Fields} schema=${tool.parameters} />
    <p class="bar"><button type="submit" class="main" disabled=${running !== null}>${c.call}</button>
      ${running && html`<button type="button" onClick=${() => running.abort()}>${t.stop}</button>`}</p>
  </form>
  ${running && html`<${Waiting} tool=${tool.name} />`}
  <${Fault} text=${fault} />
  ${reply && html`<div id="reply" role="status" class=${reply.success ? '' : 'fault'}>
    <p>${reply.success ? t.states.ok : t.states.failed}${typeof reply.audit?.duration_ms === 'number' && ` · ${duration(reply.audit.duration_ms)}`}</p>
    <pre tabindex="0" role="group" aria-label=${t.result}>${shown(reply)}</pre></div>`}`;
}

/** @param {any} reply */
function shown({ success, result, error }) {
  const value = success ? (result ?? null) : error;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/**
 * The question whether the call may be made, where it waits for that.
 * @param {{ tool: string }} properties
 */
function Waiting({ tool }) {
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const look = async () => {
      const all = await approvals().catch(() => []);
      setAsked(all.find((/** @type {any} */ one) => one.tool === tool && one.user === account.value?.user) ?? null);
    };
    const clock = setInterval(look, AGAIN);
    return () => clearInterval(clock);
  }, [tool]);
  return asked && html`<div class="card" key=${asked.id}><${Approval} id=${asked.id} reason=${asked.reason} call=${{ answer_by: asked.expires_at }} />
    <pre tabindex="0" role="group" aria-label=${t.arguments}>${visible(JSON.stringify(asked.arguments, null, 2))}</pre></div>`;
}
