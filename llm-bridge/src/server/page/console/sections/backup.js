// A backup of the running server, saved as a file.

import { useState } from '../../vendor/hooks.js';
import { download } from '../../state/download.js';
import { html } from '../../state/html.js';
import { size } from '../../text/format.js';
import { prose } from '../../text/nodes.js';
import { backup } from '../api.js';
import { Fault } from '../parts/loaded.js';
import { c } from '../state.js';

export function Backup() {
  const [state, setState] = useState('');
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setFault('');
    setState(c.backupMade);
    try {
      const { content, name } = await backup();
      download(content, name);
      setState(c.backupIs(name, size(content.size)));
    } catch (error) {
      setState('');
      setFault(/** @type {Error} */ (error).message);
    } finally {
      setBusy(false);
    }
  };
  return html`<div><h2>${c.backup}</h2>
    <p class="note">${prose(c.backupAbout)}</p>
    <p class="bar"><button type="button" id="backup" disabled=${busy} onClick=${run}>${c.makeBackup}</button> <span role="status" id="backup-state">${state}</span></p>
    <${Fault} text=${fault} /></div>`;
}
