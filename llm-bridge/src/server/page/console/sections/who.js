// Who may call a tool: a level and above, of those the users whose personas allow its module.

import { html } from '../../state/html.js';
import { allowModule, personas } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { c } from '../state.js';

/** @param {{ tool: import('../../state/types.d.ts').Tool }} properties */
export function Who({ tool: { level, module } }) {
  const all = useLoaded(personas);
  const { fault, busy, change } = useChange(all.again);
  return html`<p>${c.whoLevel(level)} <small>${c.whoLevelFrom}</small></p>
    <${Fault} text=${all.fault || fault} onAgain=${all.fault ? all.again : undefined} />
    ${all.value && all.value.length > 0 && html`<fieldset class="checks" id="who"><legend>${c.whoPersonas(module)}</legend>
      ${all.value.map(({ name, allowed_modules: allowed }) => html`<label key=${name}><input type="checkbox" checked=${allowed.includes(module)} disabled=${busy}
        onChange=${(/** @type {any} */ event) => change(() => allowModule(name, module, event.target.checked), c.modulesAre(name))} /> ${name}</label>`)}</fieldset>`}`;
}
