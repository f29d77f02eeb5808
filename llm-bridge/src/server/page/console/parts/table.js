// A table; on narrow screens each row is a card. Roles are named because a table that is laid out otherwise loses them.

import { html } from '../../state/html.js';

/**
 * `cells` are as many as `columns`.
 * @param {{ label: string, columns: string[], rows: { key: string, off?: boolean, cells: any[] }[], empty: string }} properties
 */
export function Table({ label, columns, rows, empty }) {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<table class="rows" role="table" aria-label=${label}>
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th role="columnheader" scope="col">${column || html`<span class="unseen">·</span>`}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(({ key, off, cells }) => html`<tr role="row" key=${key} class=${off ? 'off' : ''}>
      ${cells.map((cell, index) => html`<td role="cell" data-title=${columns[index]}>${cell}</td>`)}</tr>`)}</tbody>
  </table>`;
}
