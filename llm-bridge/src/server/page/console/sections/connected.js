// The accounts on MCP servers that users have let this server into.

import { html } from '../../state/html.js';
import { accounts, revokeAccount } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { account, c } from '../state.js';

export function ConnectedAccounts() {
  const all = useLoaded(accounts);
  const { fault, busy, change } = useChange(all.again);
  return html`<div><h2>${c.accounts}</h2>
    <${Fault} text=${all.fault || fault} onAgain=${all.fault ? all.again : undefined} />
    ${all.value && html`<${Table} label=${c.accounts} empty=${c.noAccounts} columns=${[c.server, c.user, c.authorizationServer, c.since, c.actions]}
      rows=${all.value.map(({ server, user, issuer, since }) => ({ key: `${server} ${user ?? ''}`, cells: [
        html`<code>${server}</code>`,
        user ?? html`<i>${c.sharedByAll}</i>`,
        issuer ?? c.sealedOtherwise,
        exact(since),
        (user !== null || account.value?.operator) && html`<${Sure} word=${c.revoke} title=${c.revokeAccountWhat(server, user)} question=${c.revokeAccount(server, user)} disabled=${busy}
          onSure=${() => change(() => revokeAccount(server, user), c.accountRevoked(server))} />`,
      ] }))} />`}</div>`;
}
