// Personas: which modules who has them may use.

import { useState } from '../../vendor/hooks.js';
import { tools } from '../../state/api.js';
import { html } from '../../state/html.js';
import * as api from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';

export function Personas() {
  const personas = useLoaded(api.personas);
  const modules = useLoaded(async () => [...new Set((await tools()).map(({ module }) => module))].sort());
  const { fault, busy, change } = useChange(personas.again);
  const [name, setName] = useState('');
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (await change(() => api.addPersona(name, []), c.added(name))) setName('');
  };
  return html`<${Fault} text=${personas.fault || modules.fault || fault} onAgain=${personas.fault || modules.fault ? () => { personas.again(); modules.again(); } : undefined} />
    <form class="bar" id="add-persona" onSubmit=${add}>
      <label><span>${c.newPersona}</span><input required maxlength="256" autocomplete="off" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <button type="submit" class="main" disabled=${busy}>${c.add}</button>
    </form>
    ${personas.value && html`<${Table} label=${c.sections.personas} empty=${c.noPersonas} columns=${[c.persona, c.modules, c.users, c.actions]}
      rows=${personas.value.map((persona) => ({ key: persona.name, cells: [
        html`<b>${persona.name}</b>`,
        html`<${Modules} persona=${persona} modules=${modules.value ?? []} disabled=${busy} onChange=${(/** @type {string} */ module, /** @type {boolean} */ allowed) => change(() => api.allowModule(persona.name, module, allowed), c.modulesAre(persona.name))} />`,
        (persona.users ?? []).join(', ') || '–',
        html`<${Sure} word=${c.remove} title=${c.removeWhat(persona.name)} disabled=${busy}
          question=${persona.users?.length ? c.removeUsedPersona(persona.name, persona.users.length) : c.removeAsk(persona.name)}
          onSure=${() => change(() => api.removePersona(persona.name, Boolean(persona.users?.length)), c.removed(persona.name))} />`,
      ] }))} />`}`;
}

/** @param {{ persona: api.Persona, modules: string[], disabled: boolean, onChange: (module: string, allowed: boolean) => void }} properties */
function Modules({ persona, modules, disabled, onChange }) {
  const allowed = persona.allowed_modules;
  // One that is away now stays allowed.
  const all = [...new Set([...modules, ...allowed])].sort();
  return html`<span class="checks">${all.map((module) => html`<label key=${module}><input type="checkbox" checked=${allowed.includes(module)} disabled=${disabled}
    onChange=${(/** @type {any} */ event) => onChange(module, event.target.checked)} /> <code>${module}</code></label>`)}</span>`;
}
