// What people have allowed beforehand: the rules of all users, to be revoked.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { allowedBy } from '../../text/allowed.js';
import { approvalRules, revokeRule } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { c } from '../state.js';

/** @import { UsersRule } from '../api.js' */

export function Rules() {
  const [after, setAfter] = useState('');
  const rules = useLoaded(() => approvalRules(after), [after]);
  const { fault, busy, change } = useChange(rules.again);
  return html`<div><h2>${c.rules}</h2>
    <p class="note">${c.rulesAbout}</p>
    <${Fault} text=${rules.fault || fault} onAgain=${rules.fault ? rules.again : undefined} />
    ${rules.value && html`<${Table} label=${c.rules} empty=${c.noRules} columns=${[c.user, c.tool, c.allows, c.since, c.state, c.actions]}
      rows=${rules.value.rules.map((rule) => ({ key: `${rule.user} ${rule.id}`, off: !rule.applies, cells: [
        html`<b>${rule.user}</b>${rule.via && html` <small>${c.via(rule.via)}</small>`}`,
        html`<code>${rule.tool}</code>`,
        html`${allowedBy(rule, rule.tool)}<${Fixed} rule=${rule} />`,
        exact(rule.made_at),
        rule.applies ? c.holds : t.ruleIdle,
        html`<${Sure} word=${c.revoke} title=${c.revokeRuleWhat(rule.tool, rule.user)} question=${c.revokeRule(rule.tool, rule.user)} disabled=${busy}
          onSure=${() => change(() => revokeRule(rule.id, rule.user), c.ruleRevoked(rule.tool, rule.user))} />`,
      ] }))} />
      <p class="bar">${after !== '' && html`<button type="button" onClick=${() => setAfter('')}>${c.firstUsers}</button>`}
        ${rules.value.next !== null && html`<button type="button" id="rules-more" onClick=${() => setAfter(rules.value?.next ?? '')}>${c.moreUsers}</button>`}</p>`}</div>`;
}

/**
 * The arguments that have to be as they were.
 * @param {{ rule: UsersRule }} properties
 */
function Fixed({ rule }) {
  const fixed = rule.scope === 'arguments' ? rule.arguments : rule.scope === 'folder' ? rule.others : {};
  return Object.keys(fixed).length > 0 && html`<details><summary>${c.arguments}</summary><pre tabindex="0" role="group" aria-label=${c.arguments}>${JSON.stringify(fixed, null, 2)}</pre></details>`;
}
