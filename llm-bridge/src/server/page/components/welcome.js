// The empty conversation: example questions, made from the tools at hand.

import { html } from '../state/html.js';
import { t } from '../state/language.js';
import { tools, toolsFailure } from '../state/store.js';
import { ask } from '../state/turn.js';
import { focusQuestion } from './header.js';

/** @import { Tool } from '../state/types.d.ts' */

const MOST = 4;

export function Welcome() {
  const usable = tools.value.filter((tool) => tool.enabled);
  const known = Object.keys(t.examples);
  const rank = (/** @type {Tool} */ tool) => (known.includes(tool.name) ? known.indexOf(tool.name) : known.length);
  const chosen = usable.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST);
  return html`<section id="welcome" class="column">
    <img src="icon.svg" alt="" width="48" height="48" />
    <h1>${t.welcome}</h1>
    <p id="welcome-line">${tools.value.length > 0 && !toolsFailure.value ? t.toolsReady(usable.length) : ''}</p>
    <ul id="examples" aria-label=${t.exampleQuestions}>${chosen.map((tool) => html`<${Example} key=${tool.name} tool=${tool} />`)}</ul>
  </section>`;
}

/** @param {{ tool: Tool }} properties */
function Example({ tool }) {
  const question = /** @type {Record<string, string>} */ (t.examples)[tool.name] ?? t.use(tool.name, tool.description.replace(/\.\s*$/, ''));
  const send = () => {
    ask(question);
    focusQuestion();
  };
  return html`<li><button type="button" onClick=${send}><span class="example-text">${question}</span><code>${tool.name}</code></button></li>`;
}
