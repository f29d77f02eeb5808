// Files of a message and the parts of a tool's result: pictures, sound, files, tables, formatted text. Bytes come from the server with
// the user's key.

import { useLayoutEffect, useState } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { file } from '../state/api.js';
import { download } from '../state/download.js';
import { t } from '../state/language.js';
import { number, size } from '../text/format.js';
import { Icon } from './icon.js';
import { Text } from './text.js';

/** @import { ResultPart } from '../state/types.d.ts' */

/** @param {{ part: ResultPart }} properties */
export function ResultView({ part }) {
  if (part.type === 'text') return html`<div class="text plain">${part.text}</div>`;
  if (part.type === 'markdown') return html`<${Text} text=${part.text ?? ''} grows=${false} />`;
  if (part.type === 'table') return html`<${Table} part=${part} />`;
  return html`<${FileView} part=${part} />`;
}

/** @param {{ part: ResultPart }} properties */
export function FileView({ part }) {
  const shows = part.type === 'image' || part.type === 'audio';
  const { address, fault } = useBytes(shows ? part : null);
  if (!shows) return html`<div class="part-foot"><${Download} part=${part} /></div>`;
  return html`<figure>
    ${address && (part.type === 'image' ? html`<img src=${address} alt=${part.name ?? t.picture} />` : html`<audio src=${address} controls></audio>`)}
    ${part.path && html`<figcaption class="part-foot"><${Download} part=${part} /></figcaption>`}
    ${fault && html`<span class="part-error">${fault}</span>`}
  </figure>`;
}

const NO_BYTES = { address: '', fault: '' };

/**
 * An address at which the browser can show a part.
 * @param {ResultPart | null} part
 */
function useBytes(part) {
  const [bytes, setBytes] = useState(NO_BYTES);
  const { path, url } = part ?? {};
  // Before it is painted: what is shown would be the file of another message for a moment.
  useLayoutEffect(() => {
    setBytes(NO_BYTES);
    // One from elsewhere would tell its server who reads.
    if (url?.startsWith('data:')) setBytes({ address: url, fault: '' });
    if (!path) return undefined;
    let address = '';
    let gone = false;
    file(path).then((blob) => {
      if (gone) return;
      address = URL.createObjectURL(blob);
      setBytes({ address, fault: '' });
    }, (error) => { if (!gone) setBytes({ address: '', fault: error.message }); });
    return () => {
      gone = true;
      URL.revokeObjectURL(address);
    };
  }, [path, url]);
  return bytes;
}

/** @param {{ part: ResultPart }} properties */
function Table({ part }) {
  const left = (part.total ?? 0) - (part.rows?.length ?? 0);
  return html`<div class="text">
    <div class="scroll" tabindex="0" role="group" aria-label=${t.table}><table>
      <thead><tr>${part.columns?.map((column) => html`<th>${column}</th>`)}</tr></thead>
      <tbody>${part.rows?.map((row) => html`<tr>${row.map((value) => html`<td class=${typeof value === 'number' ? 'number' : ''}>${cellText(value)}</td>`)}</tr>`)}</tbody>
    </table></div>
    <div class="part-foot"><${Download} part=${part} />${left > 0 && html`<span>${t.moreRows(number(left))}</span>`}</div>
  </div>`;
}

/** @param {{ part: ResultPart }} properties */
function Download({ part }) {
  const [fault, setFault] = useState('');
  const name = html`<span class="part-name">${part.name ?? part.type}</span>`;
  const { path } = part;
  if (!path) return name;
  const save = async () => {
    try {
      download(await file(path), part.name ?? part.type);
    } catch (error) {
      setFault(/** @type {Error} */ (error).message);
    }
  };
  return html`<button type="button" class="part-file" title=${t.save(part.name ?? part.type)} disabled=${fault !== ''} onClick=${save}>
      <${Icon} name="save" />${name}${part.size !== undefined && html`<span>${size(part.size)}</span>`}
    </button>${fault && html`<span class="part-error">${fault}</span>`}`;
}

/** @param {unknown} value */
function cellText(value) {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
