// A button that asks once more in its own place, for what cannot be taken back.

import { useLayoutEffect, useRef, useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';

/** @param {{ word: string, title?: string, question: string, disabled?: boolean, onSure: () => void }} properties */
export function Sure({ word, title, question, disabled, onSure }) {
  const [asks, setAsks] = useState(false);
  const first = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const keep = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const began = useRef(false);
  useLayoutEffect(() => {
    if (began.current) (asks ? keep : first).current?.focus();
    began.current = true;
  }, [asks]);
  if (!asks) return html`<button type="button" ref=${first} title=${title} disabled=${disabled} onClick=${() => setAsks(true)}>${word}</button>`;
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Escape') setAsks(false); };
  return html`<span class="sure" role="group" aria-label=${question} onKeyDown=${onKeyDown}><span>${question}</span>
    <button type="button" class="sure-yes" onClick=${() => { setAsks(false); onSure(); }}>${word}</button>
    <button type="button" ref=${keep} onClick=${() => setAsks(false)}>${t.cancel}</button></span>`;
}
