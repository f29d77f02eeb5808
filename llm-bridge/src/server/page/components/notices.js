// What is said above the chat: about the server, and about the build under `toolrack dev`.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { connect } from '../state/server.js';
import { build, health, modelsFailure, unreachable } from '../state/store.js';
import { coloured } from '../text/ansi.js';

export function Notices() {
  return html`<div class="notices"><${Banner} /><${Build} /></div>`;
}

function Banner() {
  if (unreachable.value) {
    return html`<aside id="banner" aria-label=${t.aboutServer}><p>${unreachable.value} <button type="button" onClick=${connect}>${t.tryAgain}</button></p></aside>`;
  }
  if (modelsFailure.value && health.value) {
    return html`<aside id="banner" class="ill" aria-label=${t.aboutServer}><p>${t.noModelServer} ${modelsFailure.value} <button type="button" onClick=${connect}>${t.tryAgain}</button></p></aside>`;
  }
  if (health.value?.upstream !== 'demo') return null;
  return html`<aside id="banner" class="demo" aria-label=${t.aboutServer}><p>${t.demo} <code>toolrack serve --upstream http://127.0.0.1:8080/v1</code></p></aside>`;
}

function Build() {
  const { state, message } = build.value;
  if (state === 'current') return null;
  return html`<aside id="build" class=${state === 'failed' ? 'failed' : ''} aria-label=${t.build}><div role="status">
    ${state === 'failed' ? html`<p>${t.buildFailed}</p><pre tabindex="0" role="group" aria-label=${t.messages}>${coloured(message)}</pre>` : html`<p>${t.building}</p>`}
  </div></aside>`;
}
