// A text as Markdown, with notes where it names its sources.

import { useLayoutEffect, useRef } from '../vendor/hooks.js';
import { html } from '../state/html.js';
import { putNotes } from '../text/notes.js';
import { TextView } from '../text/view.js';
import { note } from './sources.js';

/** @import { Source } from '../state/types.d.ts' */

/** @param {{ text: string, grows: boolean, sources?: readonly Source[] }} properties */
export function Text({ text, grows, sources = [] }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const view = useRef(/** @type {TextView | null} */ (null));
  // Before it is painted: the text would be that of another answer for a moment, or none.
  useLayoutEffect(() => {
    if (element.current) view.current = new TextView(element.current);
    return () => view.current?.end();
  }, []);
  useLayoutEffect(() => {
    // The calls are over when the text comes that rests on them.
    if (view.current) view.current.finish = (content) => putNotes(content, sources, note);
    view.current?.show(text, grows);
  }, [text, grows]);
  return html`<div class="text plain" ref=${element}></div>`;
}
