// The documents that tools search.

import { useEffect } from '../../vendor/hooks.js';
import { Documents as Dialog } from '../../dialogs/documents.js';
import { html } from '../../state/html.js';
import { t } from '../../state/language.js';
import { documents } from '../../state/api.js';
import { dialog } from '../../state/store.js';
import { moment, number, size } from '../../text/format.js';
import { Fault, useLoaded } from '../parts/loaded.js';
import { Table } from '../parts/table.js';
import { c } from '../state.js';

export function Documents() {
  const { value, fault, again } = useLoaded(documents, [dialog.value]);
  useEffect(() => () => { dialog.value = ''; }, []);
  return html`<${Fault} text=${fault} onAgain=${again} />
    ${value && html`<p class="bar"><button type="button" class="main" aria-haspopup="dialog" onClick=${() => { dialog.value = 'documents'; }}>${c.addOrRemove}</button> <span>${c.documents(value.total)}</span></p>
    <${Table} label=${t.documents} empty=${t.noDocuments} columns=${[c.document, c.kind, c.size, c.passages, c.added_]}
      rows=${value.documents.map((one) => ({ key: one.path, cells: [one.path, one.kind, size(one.bytes), number(one.passages), moment(one.added)] }))} />`}
    ${dialog.value === 'documents' && html`<${Dialog} />`}`;
}
