// The console's frame: who uses it, its sections, and the one that is shown.

import { useEffect, useErrorBoundary, useLayoutEffect, useRef } from '../../vendor/hooks.js';
import { Icon } from '../../components/icon.js';
import { KeyDialog } from '../../components/key.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { isAdmin } from '../../state/server.js';
import { said } from '../../state/store.js';
import { prose } from '../../text/nodes.js';
import { Approvals } from '../sections/approvals.js';
import { Audit } from '../sections/audit.js';
import { Documents } from '../sections/documents.js';
import { Models } from '../sections/models.js';
import { Overview } from '../sections/overview.js';
import { People } from '../sections/people.js';
import { Personas } from '../sections/personas.js';
import { Schedule } from '../sections/schedule.js';
import { Servers } from '../sections/servers.js';
import { Settings } from '../sections/settings.js';
import { Tools } from '../sections/tools.js';
import { Traces } from '../sections/traces.js';
import { Turns } from '../sections/turns.js';
import { Webhooks } from '../sections/webhooks.js';
import { Fault, awaited } from './loaded.js';
import { SECTIONS, account, c, enter, place, refusal, to } from '../state.js';

const VIEWS = {
  overview: Overview, tools: Tools, people: People, personas: Personas, approvals: Approvals, audit: Audit, traces: Traces,
  servers: Servers, documents: Documents, schedule: Schedule, webhooks: Webhooks, settings: Settings, turns: Turns, models: Models,
};

export function Console() {
  const who = account.value;
  const admits = who && isAdmin(who);
  return html`<div id="console">
      <header>
        <a class="brand" href="./" aria-label="Toolrack"><img src="icon.svg" alt="" width="26" height="26" /><span>Toolrack</span></a>
        <span class="console-word">${c.console}</span>
        <span class="gap"></span>
        ${who && html`<span id="console-user" title=${c.inTenant(who.tenant)}>${c.signedIn(who.user, who.level)}</span>`}
        <a class="quiet" href="./"><${Icon} name="chats" /><span class="wide-only">${c.toChat}</span><span class="unseen narrow-only">${c.toChat}</span></a>
      </header>
      ${admits && html`<${Sections} />`}
      ${admits ? html`<${Shown} />` : html`<main id="section" class="refused" tabindex="-1" aria-busy=${who || refusal.value ? undefined : 'true'}><h1>${c.console}</h1><${Refused} /></main>`}
    </div>
    <${KeyDialog} />
    <p id="announce" class="unseen" role="status">${said}</p>`;
}

function Refused() {
  const who = account.value;
  if (refusal.value) return html`<p role="alert">${prose(refusal.value)}</p><p><button type="button" onClick=${enter}>${t.tryAgain}</button></p>`;
  return who && html`<p id="refusal">${c.forAdmins(who.user, who.level)}</p>`;
}

function Sections() {
  const { section } = place.value;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  // On a phone they stand in a row that is longer than the window.
  useEffect(() => { list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }); }, [section]);
  return html`<nav id="sections" aria-label=${c.sectionsOf} ref=${list}><ul>${SECTIONS.map((name) => html`<li key=${name}>
    <a href=${to(name)} aria-current=${name === section ? 'page' : undefined}>${c.sections[name]}</a></li>`)}</ul></nav>`;
}

function Shown() {
  const { section } = place.value;
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const began = useRef(false);
  useLayoutEffect(() => {
    // Who follows a link of the list goes on in the section.
    if (began.current) main.current?.focus();
    began.current = true;
    main.current?.scrollTo(0, 0);
  }, [section]);
  return html`<main id="section" tabindex="-1" ref=${main} data-section=${section} aria-busy=${awaited.value > 0 ? 'true' : undefined}>
    <h1>${c.sections[section]}</h1>
    <p class="about">${c.about[section]}</p>
    <${Guarded} key=${section} section=${section} />
  </main>`;
}

/**
 * A section, or that it cannot be shown: another version of the server may answer, or something before it.
 * @param {{ section: keyof typeof VIEWS }} properties
 */
function Guarded({ section }) {
  const [error, reset] = useErrorBoundary();
  return error ? html`<${Fault} text=${c.notShown(error.message)} onAgain=${reset} />` : html`<${VIEWS[section]} />`;
}
