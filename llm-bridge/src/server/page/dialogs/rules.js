// What a person has allowed beforehand, to be revoked.

import { useEffect, useRef, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { approvalRules, revokeRule } from '../state/api.js';
import { t } from '../state/language.js';
import { chats, dialog } from '../state/store.js';
import { allowedBy } from '../text/allowed.js';
import { moment, oneLine } from '../text/format.js';
import { visible } from '../text/visible.js';

/** @import { ApprovalRule } from '../state/types.d.ts' */

/** How much of the arguments stands in a line; all of it is in its title. */
const MOST_SHOWN = 300;

export function Rules() {
  const [rules, setRules] = useState(/** @type {ApprovalRule[] | null} */ (null));
  const [fault, setFault] = useState('');
  const failed = (/** @type {Error} */ error) => setFault(error.message);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const load = () => approvalRules().then(setRules, failed);
  useEffect(() => { load(); }, []);
  const revoke = (/** @type {string} */ id) => revokeRule(id).then(load, failed).then(() => list.current?.focus());
  return html`<div class="rules-list" tabindex="-1" ref=${list}>${rules?.length === 0 && html`<p class="empty">${t.noRules}</p>`}
    ${rules && rules.length > 0 && html`<ul class="rules">${rules.map((rule) => html`<${Rule} key=${rule.id} rule=${rule} onRevoke=${() => revoke(rule.id)} />`)}</ul>`}
    ${fault && html`<p class="ask-fault" role="alert">${fault}</p>`}</div>`;
}

/** @param {{ rule: ApprovalRule, onRevoke: () => void }} properties */
function Rule({ rule, onRevoke }) {
  const { tool, made_at: at, applies, via } = rule;
  const fixed = rule.scope === 'arguments' ? rule.arguments : rule.scope === 'folder' ? rule.others : {};
  const text = visible(JSON.stringify(fixed));
  return html`<li class="rule" data-scope=${rule.scope}>
    <p><code class="call-name">${tool}</code> <span>${allowedBy(rule, tool)}</span>${rule.scope === 'chat' && html` <a href=${`#${rule.chat}`} onClick=${() => { dialog.value = ''; }}>${chats.value?.find(({ id }) => id === rule.chat)?.title || t.openChat}</a>`}</p>
    ${text !== '{}' && html`<p><code class="rule-arguments" title=${text}>${oneLine(text, MOST_SHOWN)}</code></p>`}
    <p class="call-note">${[t.ruleSince(moment(at)), via && t.ruleVia(via), !applies && t.ruleIdle].filter(Boolean).join(' · ')}</p>
    <button type="button" class="quiet revoke" aria-label=${t.revokeRule(tool)} onClick=${onRevoke}>${t.revoke}</button>
  </li>`;
}
