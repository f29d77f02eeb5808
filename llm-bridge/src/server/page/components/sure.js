// A button that asks once more in its own place, for what cannot be taken back.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { onEscape, useFocus, useFocusBack } from './focus.js';
import { Icon } from './icon.js';

/** @import { ReadonlySignal } from '../vendor/signals.js' */

/** @typedef {{ word: string, question: string, title?: string | undefined, label?: string | undefined, quiet?: boolean, icon?: 'trash', yes?: string, no?: string, disabled?: boolean | ReadonlySignal<boolean> | undefined, onSure: () => void }} Properties */

/** @param {Properties} properties */
export function Sure(properties) {
  const { word, title, label, quiet, icon, disabled } = properties;
  const [asks, setAsks] = useState(false);
  const first = useFocusBack(asks);
  if (asks) return html`<${Asking} ...${properties} onEnd=${() => setAsks(false)} />`;
  return html`<button type="button" class=${quiet ? 'quiet' : undefined} ref=${first} title=${title} aria-label=${label} disabled=${disabled} onClick=${() => setAsks(true)}>${icon ? html`<${Icon} name=${icon} /><span>${word}</span>` : word}</button>`;
}

/** @param {Properties & { onEnd: () => void }} properties */
function Asking({ word, question, yes = word, no = t.cancel, onSure, onEnd }) {
  const keep = useFocus();
  return html`<span class="sure" role="group" aria-label=${question} onKeyDown=${onEscape(onEnd)}><span>${question}</span>
    <button type="button" class="sure-yes danger" onClick=${() => { onEnd(); onSure(); }}>${yes}</button>
    <button type="button" ref=${keep} onClick=${onEnd}>${no}</button></span>`;
}
