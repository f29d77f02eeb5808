// The drawn icons, hidden from assistive technology.

import { html } from '../state/html.js';

const PATHS = {
  attach: 'M14.5 9.5l-5 5a3.2 3.2 0 0 1-4.6-4.6l5.8-5.8a2.2 2.2 0 0 1 3.1 3.1l-5.6 5.6a1.1 1.1 0 0 1-1.6-1.6l5-5',
  bell: 'M5 14V9a5 5 0 0 1 10 0v5M3.5 14h13M8.5 16.5h3',
  cancelled: 'M5.5 10h9',
  chats: 'M3 4.5h14v10H9l-4 3v-3H3z',
  chevron: 'M7.5 5l5 5-5 5',
  clock: 'M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM10 6.5V10l2.5 2',
  close: 'M5 5l10 10M15 5L5 15',
  copy: 'M7 7V4.5h8.5V13H13M4.5 7H13v8.5H4.5z',
  document: 'M5 2.5h6.5l4 4v11H5zM11.5 2.5v4h4M7.5 10.5h5M7.5 13.5h5',
  done: 'M4.5 10.5l3.5 3.5 7.5-8',
  down: 'M10 4v12M5 11l5 5 5-5',
  edit: 'M4 16l.8-3.2L13 4.6l2.4 2.4-8.2 8.2z',
  failed: 'M10 5.5v5.5M10 14.2v.3',
  forward: 'M4 10h11M10.5 5.5L15 10l-4.5 4.5',
  more: 'M4.5 10h.1M10 10h.1M15.5 10h.1',
  pin: 'M7 3.5h6M8 3.5v5l-2.5 3h9L12 8.5v-5M10 11.5v5.5',
  plus: 'M10 4.5v11M4.5 10h11',
  retry: 'M15.5 10a5.5 5.5 0 1 1-1.7-4M15.5 3.5V7H12',
  save: 'M10 4v8.5M6.5 9.5L10 13l3.5-3.5M4.5 16h11',
  search: 'M8.8 14a5.2 5.2 0 1 0 0-10.4 5.2 5.2 0 0 0 0 10.4zM12.6 12.6l4 4',
  send: 'M10 16V4M5 9l5-5 5 5',
  settings: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4',
  tools: 'M2.5 4.5h15M4.5 4.5v4M3.4 8.5h2.2v7H3.4zM10 4.5V14M8 15h4M15.5 4.5v6M13.6 12.4a1.9 1.9 0 1 0 3.8 0a1.9 1.9 0 1 0-3.8 0',
  trash: 'M4 6h12M8 6V4h4v2M5.5 6l.8 10.5h7.4L14.5 6',
};

/** @param {{ name: keyof typeof PATHS }} properties */
export function Icon({ name }) {
  return html`<svg viewBox="0 0 20 20" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}
