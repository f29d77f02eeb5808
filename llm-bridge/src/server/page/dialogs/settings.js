// What holds for this chat, and how the page looks.

import { useEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { personas } from '../state/api.js';
import { set } from '../state/chats.js';
import { notifies, notify } from '../state/inbox.js';
import { givenKey, signOut } from '../state/key.js';
import { LANGUAGES, language, t } from '../state/language.js';
import { isAdmin } from '../state/server.js';
import { prefer } from '../state/storage.js';
import { account, chat, chats, dialog, tools } from '../state/store.js';
import { setTheme, theme } from '../state/theme.js';
import { Dialog } from '../components/dialog.js';
import { Rules } from './rules.js';

/** @import { Settings } from '../state/types.d.ts' */

export function SettingsDialog() {
  return html`<${Dialog} id="settings" title=${t.settings} onClose=${() => { dialog.value = ''; }}>
    <section class="settings-group" aria-labelledby="settings-chat"><h3 id="settings-chat">${t.thisChat}</h3><${OfChat} /></section>
    <section class="settings-group" aria-labelledby="settings-rules"><h3 id="settings-rules">${t.allowedBeforehand}</h3><${Rules} /></section>
    <section class="settings-group" aria-labelledby="settings-page"><h3 id="settings-page">${t.thisPage}</h3><${OfPage} /></section>
  </${Dialog}>`;
}

function OfChat() {
  const { settings } = chat.value;
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  useEffect(() => { personas().then((all) => setNames(all.map(({ name }) => name)), () => {}); }, []);
  return html`
    <label class="ask-field"><span>${t.systemPrompt}</span>
      <textarea id="setting-system" rows="3" placeholder=${t.byDefault} defaultValue=${settings.system ?? ''} onChange=${(/** @type {any} */ event) => set({ system: event.target.value.trim() || null })}></textarea></label>
    <div class="settings-row"><${Sampling} name="temperature" max=${2} /><${Sampling} name="top_p" max=${1} /><${Sampling} name="max_tokens" min=${1} max=${1_000_000} step="1" /></div>
    <div class="settings-row">
      ${chats.value !== null && html`<label class="ask-field"><span>${t.thinkingSetting}</span>
        <select value=${settings.thinking ?? ''} onChange=${(/** @type {any} */ event) => set({ thinking: event.target.value || null })}>
          <option value="">${t.byDefault}</option>${Object.entries(t.thinkingLevels).map(([value, word]) => html`<option value=${value} selected=${value === settings.thinking}>${word}</option>`)}
        </select></label>`}
      ${names.length > 0 && html`<label class="ask-field"><span>${t.persona}</span>
        <select value=${settings.persona ?? ''} onChange=${(/** @type {any} */ event) => set({ persona: event.target.value || null })}>
          <option value="">${t.byDefault}</option>${names.map((name) => html`<option value=${name} selected=${name === settings.persona}>${name}</option>`)}
        </select></label>`}
    </div>
    <${ToolChoice} settings=${settings} />`;
}

/**
 * A number, or why it cannot be taken, in the browser's words.
 * @param {{ name: 'temperature' | 'top_p' | 'max_tokens', min?: number, max: number, step?: string }} properties
 */
function Sampling({ name, min = 0, max, step = 'any' }) {
  const [fault, setFault] = useState('');
  const take = (/** @type {any} */ event) => {
    const { value, validationMessage } = event.target;
    setFault(validationMessage);
    if (!validationMessage) set({ [name]: value === '' ? null : Number(value) });
  };
  return html`<label class="ask-field"><span>${t.sampling[name]}</span>
    <input type="number" min=${min} max=${max} step=${step} placeholder=${t.byDefault} defaultValue=${chat.value.settings[name] ?? ''} aria-invalid=${String(fault !== '')} onChange=${take} />
    ${fault && html`<small class="ask-fault" role="alert">${fault}</small>`}</label>`;
}

/** @param {{ settings: Settings }} properties */
function ToolChoice({ settings }) {
  const usable = tools.value.filter((tool) => tool.enabled).map(({ name }) => name);
  const chosen = new Set(settings.tools ?? usable);
  const toggle = (/** @type {string} */ name, /** @type {boolean} */ on) => {
    const now = usable.filter((other) => (other === name ? on : chosen.has(other)));
    set({ tools: now.length === usable.length ? null : now });
  };
  return html`<fieldset class="tool-choice"><legend>${t.toolsOfChat}</legend>
    <div class="settings-row"><button type="button" class="quiet" onClick=${() => set({ tools: null })}>${t.allTools}</button><button type="button" class="quiet" onClick=${() => set({ tools: [] })}>${t.noToolsAtAll}</button></div>
    <div class="choices">${usable.map((name) => html`<label key=${name}><input type="checkbox" checked=${chosen.has(name)} onChange=${(/** @type {any} */ event) => toggle(name, event.target.checked)} /> <code>${name}</code></label>`)}</div>
  </fieldset>`;
}

function OfPage() {
  const [told, setTold] = useState(notifies());
  const [refused, setRefused] = useState(false);
  const tell = async (/** @type {any} */ event) => {
    const wanted = event.target.checked;
    const granted = await notify(wanted);
    // Also where nothing has changed for the page: the browser has ticked the box.
    event.target.checked = granted;
    setTold(granted);
    setRefused(wanted && !granted);
  };
  const names = new Intl.DisplayNames([language], { type: 'language' });
  const who = account.value;
  return html`${who && html`<p id="account">${t.actsAs(who.user, who.level)}${isAdmin(who) && html` <a href="admin">${t.console}</a>`}</p>`}
    <div class="settings-row">
      <label class="ask-field"><span>${t.theme}</span><select id="setting-theme" value=${theme.value} onChange=${(/** @type {any} */ event) => setTheme(event.target.value)}>
        ${Object.entries(t.themes).map(([value, word]) => html`<option value=${value} selected=${value === theme.value}>${word}</option>`)}</select></label>
      <label class="ask-field"><span>${t.language}</span><select id="setting-language" value=${language} onChange=${(/** @type {any} */ event) => { prefer('language', event.target.value); location.reload(); }}>
        ${LANGUAGES.map((code) => html`<option value=${code} selected=${code === language}>${names.of(code)}</option>`)}</select></label>
    </div>
    ${'Notification' in globalThis && html`<label class="ask-check"><input type="checkbox" checked=${told} onChange=${tell} /> ${t.notify}</label>${refused && html`<p class="ask-fault" role="alert">${t.notifyRefused}</p>`}`}
    ${givenKey() && html`<p><button type="button" onClick=${signOut}>${t.signOut}</button></p>`}
    <h4>${t.keys}</h4>
    <dl class="keys">${t.keyList.map(([key, about]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${about}</dd></div>`)}</dl>`;
}
