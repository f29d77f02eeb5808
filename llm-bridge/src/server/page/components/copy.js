// A button that copies.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { copyText } from '../text/copy.js';
import { Icon } from './icon.js';

/** @param {{ text: () => string }} properties `text` is asked at the time of the click */
export function CopyButton({ text }) {
  const [word, setWord] = useState(/** @type {string | null} */ (null));
  return html`<button type="button" class="copy quiet" onClick=${() => copyText(text(), setWord)}><${Icon} name="copy" /><span>${word ?? t.copy}</span></button>`;
}
