// The documents that an answer rests on, and the passage that a note opens.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { nameOf } from '../state/sources.js';
import { passage } from '../state/store.js';
import { placed } from '../text/place.js';
import { Dialog } from './dialog.js';
import { Icon } from './icon.js';

/** @import { Source } from '../state/types.d.ts' */

/** @param {Source} source */
const about = ({ path, section, place }) => [path, section, placed(place)].filter(Boolean).join(' · ');

/** @param {{ sources: readonly Source[] }} properties */
export function Sources({ sources }) {
  if (sources.length === 0) return null;
  return html`<details class="sources">
    <summary><span class="chevron"><${Icon} name="chevron" /></span><span>${t.sources(sources.length)}</span></summary>
    <ol>${sources.map((source) => html`<li key=${source.number}><button type="button" class="source" onClick=${() => { passage.value = source; }}>
      <span class="source-number">[${source.number}]</span> <span class="source-name">${nameOf(source)}</span> <small>${[source.section, placed(source.place)].filter(Boolean).join(' · ')}</small></button></li>`)}</ol>
  </details>`;
}

/** The passage that a note has opened. */
export function PassageDialog() {
  const source = passage.value;
  if (!source) return null;
  return html`<${Dialog} id="passage" title=${`[${source.number}] ${nameOf(source)}`} onClose=${() => { passage.value = null; }}>
    <p class="passage-about">${about(source)}</p>
    ${source.text ? html`<blockquote class="passage-text" tabindex="0">${source.text}</blockquote>` : html`<p class="empty">${t.passageNotKept}</p>`}
  </${Dialog}>`;
}

/**
 * A note in the text of an answer.
 * @param {Source} source
 */
export function note(source) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'note';
  button.textContent = `[${source.number}]`;
  button.title = about(source);
  button.setAttribute('aria-label', t.sourceNumber(source.number, about(source)));
  button.addEventListener('click', () => { passage.value = source; });
  return button;
}
