// Diagrams: Mermaid draws them in a frame without an origin, which can reach neither the page nor a network.

import { t } from '../state/language.js';
import { button } from './elements.js';

/** Longer sources are shown as text, in characters. */
const MOST = 20_000;

/** What is done with what a frame says, while it is there. @type {WeakMap<HTMLIFrameElement, (data: any) => void>} */
const frames = new WeakMap();
addEventListener('message', ({ source, data }) => {
  const frame = [...document.querySelectorAll('iframe')].find((one) => one.contentWindow === source);
  if (frame) frames.get(frame)?.(data);
});

/**
 * Draws a diagram above its source, which is folded away once that worked.
 * @param {string} source
 * @param {HTMLElement} code
 * @param {HTMLElement} head
 */
export function diagram(source, code, head) {
  if (source.length > MOST) return;
  const frame = document.createElement('iframe');
  frame.className = 'diagram';
  frame.title = t.diagram;
  frame.setAttribute('sandbox', 'allow-scripts');
  frame.src = new URL('../diagram.html', import.meta.url).href;
  const showSource = button(t.source, () => {
    code.hidden = !code.hidden;
    showSource.setAttribute('aria-expanded', String(!code.hidden));
  });
  frames.set(frame, (data) => {
    const dark = getComputedStyle(document.documentElement).colorScheme === 'dark'
      || (document.documentElement.dataset.theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
    if (data?.ready) frame.contentWindow?.postMessage({ source, dark }, '*');
    else if (typeof data?.height === 'number') {
      frame.style.height = `${Math.min(Math.max(data.height, 24), 1200)}px`;
      code.hidden = true;
      if (!showSource.isConnected) head.firstElementChild?.after(showSource);
    } else if (data?.error) {
      // The source says more than an empty frame.
      frame.remove();
    }
  });
  code.before(frame);
}
