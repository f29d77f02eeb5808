// One tool: what it is, its last calls, and a form to try it.

import { useRef } from '../../vendor/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { html } from '../../state/html.js';
import { prose } from '../../text/nodes.js';
import { audit, limitTool, removeTool } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Records } from '../parts/records.js';
import { Sure } from '../parts/sure.js';
import { c } from '../state.js';
import { Trial } from './trial.js';
import { Try } from './try.js';
import { Who } from './who.js';

/** @import { Tool } from '../../state/types.d.ts' */

/** The source of tools that were registered at run time, and can be removed. */
const REGISTERED = 'host';

/** @param {{ tool: Tool, onChanged: () => void, onClose: () => void }} properties */
export function ToolDialog({ tool, onChanged, onClose }) {
  const { fault, busy, change } = useChange(onChanged);
  const last = useLoaded(() => audit({ tool: tool.name, limit: '20' }));
  return html`<${Dialog} id="tool" title=${tool.name} onClose=${onClose}>
    <p>${prose(tool.description)}</p>
    <dl class="fields">
      <dt>${c.from}</dt><dd>${tool.source}</dd>
      ${tool.version && html`<dt>${c.version}</dt><dd>${tool.version}</dd>`}
      ${!tool.enabled && html`<dt>${c.off}</dt><dd>${prose(tool.reason)}</dd>`}
    </dl>
    ${tool.source === REGISTERED && html`<p class="bar"><${Sure} word=${c.remove} title=${c.removeWhat(tool.name)} question=${c.removeAsk(tool.name)} disabled=${busy} onSure=${() => change(() => removeTool(tool.name), c.removed(tool.name))} /></p>
      <${Fault} text=${fault} />`}
    <h3>${c.who}</h3><${Who} tool=${tool} />
    ${tool.limits && html`<h3 id="limits-title">${c.limits}</h3><${Limits} name=${tool.name} limits=${tool.limits} onChanged=${onChanged} />`}
    ${tool.enabled && html`<h3>${c.tryIt}</h3><${Try} tool=${tool} onCalled=${last.again} />
      <h3>${c.trial}</h3><${Trial} name=${tool.name} />`}
    <h3>${c.lastCalls}</h3>
    <${Fault} text=${last.fault} onAgain=${last.again} />
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
