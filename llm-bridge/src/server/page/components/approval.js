// Asks whether a call may be made. The arguments stand below; what is not shown whole is not asked about.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { answerApproval } from '../state/api.js';
import { t } from '../state/language.js';
import { look } from '../state/inbox.js';
import { TimeLeft } from './timeleft.js';

/** @import { CallPart } from '../state/types.d.ts' */

/** @param {{ id: string, reason?: string | null, call: Partial<CallPart>, onAnswer?: () => void }} properties */
export function Approval({ id, reason, call, onAnswer }) {
  const [fault, setFault] = useState('');
  const [sent, setSent] = useState(/** @type {boolean | null} */ (null));
  const [refusing, setRefusing] = useState(false);
  const [word, setWord] = useState('');
  const answer = async (/** @type {boolean} */ approve) => {
    setSent(approve);
    try {
      await answerApproval(id, approve, approve ? undefined : word.trim() || undefined);
      onAnswer?.();
      look();
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      setSent(null);
    }
  };
  const disabled = sent !== null;
  return html`<p>${reason ?? t.cannotBeUndone} ${t.runIt} <${TimeLeft} call=${call} /></p>
    <div class="call-answers">
      <button type="button" class="allow" disabled=${disabled} onClick=${() => answer(true)}>${t.allowOnce}</button>
      <button type="button" class="refuse" disabled=${disabled} onClick=${() => answer(false)}>${t.refuse}</button>
      ${!refusing && html`<button type="button" class="quiet with-word" disabled=${disabled} onClick=${() => setRefusing(true)}>${t.refuseWithWord}</button>`}
    </div>
    ${refusing && html`<label class="ask-field refusal"><span>${t.whyNot}</span><input value=${word} maxlength="500" disabled=${disabled}
      onInput=${(/** @type {any} */ event) => setWord(event.target.value)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter' && !event.isComposing) answer(false); }} /></label>`}
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}`;
}
