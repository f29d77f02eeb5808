// A button that copies.

import { useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { copyText } from '../text/copy.js';
import { Icon } from './icon.js';

/** @param {{ text: () => string, label?: string }} properties `text` is asked at the time of the click */
export function CopyButton({ text, label = t.copy }) {
  const [word, setWord] = useState(label);
  const copy = async () => {
    setWord((await copyText(text())) ? t.copied : t.notCopied);
    setTimeout(() => setWord(label), 1500);
  };
  return html`<button type="button" class="copy quiet" onClick=${copy}><${Icon} name="copy" /><span>${word}</span></button>`;
}
