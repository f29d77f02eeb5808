// Asks whether a call may be made. The arguments stand below; what is not shown whole is not asked about.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { answerApproval } from '../state/api.js';
import { t } from '../state/language.js';
import { look } from '../state/inbox.js';
import { account, chats, waiting } from '../state/store.js';
import { allowedBy } from '../text/allowed.js';
import { onEscape, toCard, useFocus, useFocusBack } from './focus.js';
import { later } from './later.js';
import { TimeLeft } from './timeleft.js';

/** @import { CallPart, RuleScope } from '../state/types.d.ts' */

const ChangeForm = later(async () => (await import('../dialogs/change.js')).ChangeForm, ({ onCancel }) => onCancel());

/** @param {{ id: string, reason?: string | null, call: Partial<CallPart>, onAnswer?: () => void }} properties `call` with its name and arguments, where these may be changed */
export function Approval({ id, reason, call, onAnswer }) {
  const [fault, setFault] = useState('');
  const [sent, setSent] = useState(/** @type {boolean | null} */ (null));
  const [refusing, setRefusing] = useState(false);
  const [word, setWord] = useState('');
  const [changing, setChanging] = useState(false);
  const changeFirst = useFocusBack(changing);
  const withWord = useFocusBack(refusing);
  const { name, arguments: args } = call;
  const changeable = typeof args === 'object' && args !== null && !Array.isArray(args) && Object.keys(args).length > 0;
  const own = waiting.value.find((one) => one.id === id && one.user === account.value?.user);
  // Of a chat that the tab keeps, nobody would say when it is over.
  const offers = (own?.remember ?? []).filter(({ scope }) => scope !== 'chat' || chats.value !== null);
  const answer = async (/** @type {boolean} */ approve, /** @type {Record<string, unknown> | undefined} */ changed = undefined, /** @type {RuleScope['scope'] | undefined} */ remember = undefined) => {
    const back = toCard();
    setSent(approve);
    setFault('');
    try {
      await answerApproval(id, approve, approve ? undefined : word.trim() || undefined, changed, remember);
      onAnswer?.();
      look();
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
      setSent(null);
      back();
    }
  };
  const disabled = sent !== null;
  return html`<p>${reason ?? t.cannotBeUndone} ${t.runIt} <${TimeLeft} call=${call} /></p>
    <div class="call-answers">
      ${!changing && html`<button type="button" class="allow" disabled=${disabled} onClick=${() => answer(true)}>${t.allowOnce}</button>`}
      <button type="button" class="refuse" disabled=${disabled} onClick=${() => answer(false)}>${t.refuse}</button>
      ${changeable && !changing && html`<button type="button" class="quiet change-first" ref=${changeFirst} disabled=${disabled} onClick=${() => setChanging(true)}>${t.changeFirst}</button>`}
      ${!refusing && html`<button type="button" class="quiet with-word" ref=${withWord} disabled=${disabled} onClick=${() => setRefusing(true)}>${t.refuseWithWord}</button>`}
    </div>
    ${!changing && offers.length > 0 && html`<${Remember} offers=${offers} tool=${name ?? ''} disabled=${disabled} onChoose=${(/** @type {RuleScope['scope']} */ scope) => answer(true, undefined, scope)} />`}
    ${changing && html`<${ChangeForm} tool=${name ?? ''} args=${/** @type {any} */ (args)} disabled=${disabled} onSend=${(/** @type {Record<string, unknown>} */ changed) => answer(true, changed)} onCancel=${() => setChanging(false)} />`}
    ${refusing && html`<${Refusal} word=${word} disabled=${disabled} onInput=${setWord} onSend=${() => answer(false)} onCancel=${() => { setWord(''); setRefusing(false); }} />`}
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}`;
}

/**
 * Why not, for the model to read.
 * @param {{ word: string, disabled: boolean, onInput: (word: string) => void, onSend: () => void, onCancel: () => void }} properties
 */
function Refusal({ word, disabled, onInput, onSend, onCancel }) {
  const field = useFocus();
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && !event.isComposing) onSend();
    onEscape(onCancel)(event);
  };
  return html`<label class="ask-field refusal"><span>${t.whyNot}</span><input value=${word} maxlength="500" disabled=${disabled} ref=${field}
      onInput=${(/** @type {any} */ event) => onInput(event.target.value)} onKeyDown=${onKeyDown} /></label>
    <div class="call-answers"><button type="button" class="quiet not-so" disabled=${disabled} onClick=${onCancel}>${t.cancel}</button></div>`;
}

/**
 * What else may be allowed with this call, each with what it means.
 * @param {{ offers: RuleScope[], tool: string, disabled: boolean, onChoose: (scope: RuleScope['scope']) => void }} properties
 */
function Remember({ offers, tool, disabled, onChoose }) {
  return html`<details class="remember"><summary>${t.allowMore}</summary>
    ${offers.map((offer) => html`<button type="button" key=${offer.scope} class=${`remember-${offer.scope}`} disabled=${disabled} onClick=${() => onChoose(offer.scope)}>
      <b>${t.rememberAs[offer.scope]}</b><small>${allowedBy(offer, tool)}</small></button>`)}
    <p class="call-note">${t.rememberNote}</p>
  </details>`;
}
