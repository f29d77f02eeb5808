// A text from a file of this machine, beside a field that takes the same.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { size } from '../../text/format.js';
import { c } from '../state.js';
import { Fault } from './loaded.js';

/** A larger file is not read, in bytes: the server takes no text of that size. */
const MOST = 16_000_000;

/** @param {{ label: string, accept?: string, onText: (text: string) => void }} properties */
export function TextFile({ label, accept, onText }) {
  const [fault, setFault] = useState('');
  const read = async (/** @type {any} */ event) => {
    const [file] = event.target.files;
    setFault('');
    try {
      if (file?.size > MOST) throw new Error(c.fileTooLarge(size(MOST)));
      onText((await file?.text()) ?? '');
    } catch (error) {
      onText('');
      setFault(/** @type {Error} */ (error).message);
    }
  };
  return html`<label><span>${label}</span><input type="file" accept=${accept} onChange=${read} /></label><${Fault} text=${fault} />`;
}
