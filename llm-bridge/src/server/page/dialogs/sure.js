// A button that asks once more in its own place, for what cannot be taken back.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { onEscape, useFocus, useFocusBack } from '../components/focus.js';

/** @typedef {{ word: string, question: string, title?: string | undefined, label?: string | undefined, quiet?: boolean, yes?: string, no?: string, disabled?: boolean | undefined, onSure: () => void }} Properties */

/** @param {Properties} properties */
export function Sure(properties) {
  const { word, title, label, quiet, disabled } = properties;
  const [asks, setAsks] = useState(false);
  const first = useFocusBack(asks);
  if (asks) return html`<${Asking} ...${properties} onEnd=${() => setAsks(false)} />`;
  return html`<button type="button" class=${quiet ? 'quiet' : undefined} ref=${first} title=${title} aria-label=${label} disabled=${disabled} onClick=${() => setAsks(true)}>${word}</button>`;
}

/** @param {Properties & { onEnd: () => void }} properties */
function Asking({ word, question, yes = word, no = t.cancel, onSure, onEnd }) {
  const keep = useFocus();
  return html`<span class="sure" role="group" aria-label=${question} onKeyDown=${onEscape(onEnd)}><span>${question}</span>
    <button type="button" class="sure-yes danger" onClick=${() => { onEnd(); onSure(); }}>${yes}</button>
    <button type="button" ref=${keep} onClick=${onEnd}>${no}</button></span>`;
}
