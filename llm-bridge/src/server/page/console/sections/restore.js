// A backup is uploaded, which the next start of the server puts in place.

import { useState } from '../../vendor/hooks.js';
import { html } from '../../state/html.js';
import { size } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { upload, uploaded, deleteUploaded } from '../api.js';
import { Fault, useChange, useLoaded } from '../parts/loaded.js';
import { Sure } from '../parts/sure.js';
import { exact } from '../parts/time.js';
import { account, c } from '../state.js';

export function Restore() {
  const { value, fault, again } = useLoaded(uploaded);
  const { fault: refused, busy, change } = useChange(again, true);
  const waiting = value?.uploaded;
  return html`<div id="restore"><h2>${c.restore}</h2>
    <p class="note">${prose(c.restoreAbout)}</p>
    <${Fault} text=${fault || refused} onAgain=${fault ? again : undefined} />
    ${waiting && html`<${UploadedBackup} ...${waiting} />${account.value?.level === 'owner' && html`<p class="bar"><${Sure} word=${c.deleteUploaded} question=${c.deleteUploadedAsk} disabled=${busy} onSure=${() => change(deleteUploaded, c.uploadDeleted)} /></p>`}`}
    ${value && !waiting?.waits && account.value?.level === 'owner' && html`<${Upload} busy=${busy} onSure=${(/** @type {File} */ file) => change(() => upload(file), c.uploaded)} />`}</div>`;
}

/** @param {{ busy: boolean, onSure: (file: File) => void }} properties */
function Upload({ busy, onSure }) {
  const [file, setFile] = useState(/** @type {File | null} */ (null));
  return html`<p class="bar"><label><span>${c.restoreFile}</span><input type="file" accept=".gz,application/gzip" onChange=${(/** @type {any} */ event) => setFile(event.target.files[0] ?? null)} /></label>
    ${file && html`<${Sure} word=${c.upload} yes=${c.uploadYes} question=${c.uploadAsk(file.name)} disabled=${busy} onSure=${() => onSure(file)} />`} <span role="status">${busy && c.restoreSent}</span></p>`;
}

/** @param {import('../api.js').UploadedBackup} properties */
function UploadedBackup({ waits, made_at: made, toolrack, server, parts, bytes, by, at, error }) {
  return html`<div class=${error ? 'card bad' : 'card'}><p>${c.restoreOf(exact(made), toolrack, server, size(bytes))} ${parts.map((part) => c.restoreParts[part] ?? part).join(', ')}. ${c.restoreBy(by, exact(at))}</p>
    ${error && html`<p class="bad">${prose(c.restoreError(error))}</p>`}<p><b>${waits ? c.restoreWaits : c.restoreFailed}</b></p></div>`;
}
