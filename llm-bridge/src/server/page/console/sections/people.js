// The users of the tenant, their levels and personas, and their keys.

import { useState } from '../../vendor/hooks.js';
import { CopyButton } from '../../components/copy.js';
import { onEscape, useFocus, useFocusBack } from '../../components/focus.js';
import { serverNow } from '../../state/clock.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import * as api from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { Table } from '../parts/table.js';
import { exact } from '../parts/time.js';
import { LEVELS, account, c } from '../state.js';
import { Erase } from './erase.js';

/** @import { Key, User } from '../api.js' */

/** A day in milliseconds. */
const DAY = 86_400_000;
/** For how many days a new key may be valid; 0 is until it is revoked. */
const VALID_DAYS = [0, 7, 30, 90, 365];

/** So many users are filtered, and their keys. */
const MANY = 20;

export function People() {
  const users = useLoaded(api.users);
  const keys = useLoaded(api.keys);
  const personas = useLoaded(api.personas);
  const again = () => { users.again(); keys.again(); };
  const { fault, busy, change } = useChange(again);
  const unread = users.fault || keys.fault || personas.fault;
  const [made, setMade] = useState(/** @type {{ user: string, key: string } | null} */ (null));
  const [days, setDays] = useState(0);
  const [name, setName] = useState('');
  const make = (/** @type {string} */ user, /** @type {boolean} */ delegate) => change(async () => {
    const { key } = await api.createKey(user, name, delegate, days ? new Date(serverNow() + days * DAY) : null);
    setMade({ user, key });
    setName('');
  }, c.keyMade(user));
  const [filter, setFilter] = useState('');
  const isFound = (/** @type {string} */ user) => user.toLowerCase().includes(filter.trim().toLowerCase());
  const names = (personas.value ?? []).map(({ name }) => name);
  return html`
    ${account.value?.configured && html`<p class="note">${c.firstKey}</p>`}
    <${Fault} text=${unread || fault} onAgain=${unread ? () => { again(); personas.again(); } : undefined} />
    <div class="parts"><div><h2>${c.users}</h2><${AddUser} busy=${busy} change=${change} />
    ${(users.value ?? []).length > MANY && html`<p class="bar"><label class="grow"><span>${c.filterUsers}</span><input id="user-filter" type="search" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /></label></p>`}
    ${users.value && html`<${Table} label=${c.users} empty=${filter ? c.noUserMatches : c.noUsers} columns=${[c.user, c.level, c.sections.personas, c.since, c.keys, c.actions]}
      rows=${users.value.filter(({ id }) => isFound(id)).map((user) => ({ key: user.id, cells: [
        html`<b>${user.id}</b>`,
        html`<${Level} user=${user} disabled=${busy} onChange=${(/** @type {string} */ level) => change(() => api.promote(user.id, level), c.levelIs(user.id, level))} />`,
        html`<${Assigned} user=${user} names=${names} disabled=${busy} onChange=${(/** @type {(personas: string[]) => string[]} */ changed) => change(() => api.assign(user.id, changed), c.personasAre(user.id))} />`,
        exact(user.created_at),
        String(user.keys),
        html`<span class="row-buttons"><button type="button" disabled=${busy} title=${c.makeKeyFor(user.id)} onClick=${() => make(user.id, false)}>${c.makeKey}</button>
          <button type="button" disabled=${busy} title=${c.makeDelegateFor(user.id)} onClick=${() => make(user.id, true)}>${c.makeDelegate}</button>
          <${Sure} word=${c.remove} title=${c.removeWhat(user.id)} question=${c.removeUser(user.id)} disabled=${busy} onSure=${() => change(() => api.removeUser(user.id), c.removed(user.id))} /></span>`,
      ] }))} />`}
    ${made && html`<div class="card" id="new-key" role="status"><p>${c.newKey(made.user)}</p><p><code>${made.key}</code> <${CopyButton} text=${() => made.key} /></p>
      <p class="bar"><button type="button" onClick=${() => setMade(null)}>${c.isCopied}</button></p></div>`}</div>
    <div><h2>${c.keys}</h2>
    <div class="bar"><label><span>${c.keyName}</span><input id="key-name" maxlength="64" autocomplete="off" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <label><span>${c.keysAreValid}</span><select id="key-days" onChange=${(/** @type {any} */ event) => setDays(Number(event.target.value))}>
      ${VALID_DAYS.map((one) => html`<option value=${one} selected=${one === days}>${one ? c.days(one) : c.untilRevoked}</option>`)}</select></label></div>
    ${keys.value && html`<${Keys} keys=${keys.value.filter(({ user }) => isFound(user))} busy=${busy} onRevoke=${(/** @type {string} */ id) => change(() => api.revokeKey(id), c.revoked(id))} />`}</div>
    <${Erase} onErased=${again} /></div>`;
}

/** @param {{ busy: boolean, change: ReturnType<typeof useChange>['change'] }} properties */
function AddUser({ busy, change }) {
  const [id, setId] = useState('');
  const [level, setLevel] = useState('user');
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (await change(() => api.addUser(id, level), c.added(id))) setId('');
  };
  return html`<form class="bar" id="add-user" onSubmit=${add}>
    <label><span>${c.newUser}</span><input required maxlength="256" autocomplete="off" spellcheck="false" value=${id} onInput=${(/** @type {any} */ event) => setId(event.target.value)} /></label>
    <label><span>${c.level}</span><select value=${level} onChange=${(/** @type {any} */ event) => setLevel(event.target.value)}>${LEVELS.map((one) => html`<option value=${one} selected=${one === level}>${one}</option>`)}</select></label>
    <button type="submit" class="main" disabled=${busy}>${c.add}</button>
  </form>`;
}

/** @param {{ user: User, disabled: boolean, onChange: (level: string) => void }} properties */
function Level({ user, disabled, onChange }) {
  return html`<select aria-label=${c.levelOf(user.id)} value=${user.level} disabled=${disabled} onChange=${(/** @type {any} */ event) => {
    const chosen = event.target.value;
    event.target.value = user.level;
    onChange(chosen);
  }}>${LEVELS.map((level) => html`<option value=${level} selected=${level === user.level}>${level}</option>`)}</select>`;
}

/**
 * A user's personas, the default one first; `names` are those that there are. Whose last one is taken away may use more than before, so that
 * is asked.
 * @param {{ user: User, names: string[], disabled: boolean, onChange: (changed: (personas: string[]) => string[]) => void }} properties
 */
function Assigned({ user: { id, personas }, names, disabled, onChange }) {
  const [asks, setAsks] = useState(false);
  // Of 1,000 users each would have all personas.
  const [open, setOpen] = useState(false);
  const summary = useFocusBack(asks);
  if (names.length === 0) return c.allModules;
  const tick = (/** @type {any} */ event, /** @type {string} */ name) => {
    if (event.target.checked) return onChange((now) => [...now.filter((one) => one !== name), name]);
    if (personas.length > 1) return onChange((now) => now.filter((one) => one !== name));
    event.target.checked = true;
    return setAsks(true);
  };
  const shown = personas.length > 1 ? personas.map((name, at) => (at === 0 ? c.asDefault(name) : name)) : personas;
  return html`<details class="assigned" onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary ref=${summary}>${shown.join(', ') || c.allModules}</summary>
    ${open && names.map((name) => html`<div key=${name}><label><input type="checkbox" checked=${personas.includes(name)} disabled=${disabled} onChange=${(/** @type {any} */ event) => tick(event, name)} /> ${name}</label>
      ${personas.length > 1 && personas.includes(name) && html` <label><input type="radio" name=${`default of ${id}`} aria-label=${c.makeDefault(name, id)} checked=${personas[0] === name} disabled=${disabled}
        onChange=${() => onChange((now) => [name, ...now.filter((one) => one !== name)])} /> ${c.isDefault}</label>`}</div>`)}
    ${asks && html`<${TakeLast} user=${id} onSure=${() => onChange((now) => now.filter((one) => !personas.includes(one)))} onEnd=${() => setAsks(false)} />`}
  </details>`;
}

/** @param {{ user: string, onSure: () => void, onEnd: () => void }} properties */
function TakeLast({ user, onSure, onEnd }) {
  const keep = useFocus();
  const question = c.lastPersona(user);
  return html`<span class="sure" role="group" aria-label=${question} onKeyDown=${onEscape(onEnd)}><span>${question}</span>
    <button type="button" class="sure-yes danger" onClick=${() => { onEnd(); onSure(); }}>${c.takeAway}</button>
    <button type="button" ref=${keep} onClick=${onEnd}>${t.cancel}</button></span>`;
}

/** @param {{ keys: Key[], busy: boolean, onRevoke: (id: string) => void }} properties */
function Keys({ keys, busy, onRevoke }) {
  const now = serverNow();
  const state = (/** @type {Key} */ { expires_at: until, revoked_at: revoked }) => {
    if (revoked) return c.revokedAt(exact(revoked));
    if (!until) return c.valid;
    return Date.parse(until) > now ? c.validUntil(exact(until)) : c.expiredAt(exact(until));
  };
  return html`<${Table} label=${c.keys} empty=${c.noKeys} columns=${[c.key, c.name, c.user, c.since, c.lastUsed, c.state, c.actions]}
    rows=${keys.map((key) => ({ key: key.id, off: key.revoked_at !== null || (key.expires_at !== null && Date.parse(key.expires_at) <= now), cells: [
      html`<code>${key.id}</code>${key.delegate && html` <span class="badge">${c.delegates}</span>`}`,
      key.name,
      key.user,
      exact(key.created_at),
      key.last_used_at ? exact(key.last_used_at) : c.never,
      state(key),
      !key.revoked_at && html`<${Sure} word=${c.revoke} title=${c.revokeWhat(key.id)} question=${c.revokeKey(key.id, key.user)} disabled=${busy} onSure=${() => onRevoke(key.id)} />`,
    ] }))} />`;
}
