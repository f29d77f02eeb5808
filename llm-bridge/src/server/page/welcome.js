// The empty conversation: example questions, made from the tools at hand.

import { el } from './dom.js';

const MOST = 4;
const QUESTIONS = {
  calculate: 'What is (17 + 4) * 23?',
  current_time: 'What time is it in Tokyo?',
  'research.fetch_webpage': 'Fetch https://example.com and tell me what it is for.',
  web_search: 'Search the web for the newest Rust release.',
  research: 'Research how birds find their way.',
  claim: 'Draft a claim: cold water weighs more than warm water.',
};

/** Fills the welcome with examples for `tools`; a click asks the question. */
export function showExamples(tools, ask) {
  document.getElementById('welcome-line').textContent = ready(tools.length);
  const known = Object.keys(QUESTIONS);
  const rank = (tool) => (known.includes(tool.name) ? known.indexOf(tool.name) : known.length);
  const chosen = tools.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST);
  document.getElementById('examples').replaceChildren(...chosen.map((tool) => example(tool, ask)));
}

function ready(count) {
  if (count === 0) return 'No tool is ready. The tools panel says why.';
  return `${count === 1 ? 'One tool is' : `${count} tools are`} ready. The model calls what it needs, and you see every call.`;
}

function example(tool, ask) {
  const question = QUESTIONS[tool.name] ?? `Use ${tool.name}: ${tool.description.replace(/\.\s*$/, '')}`;
  return el('li', {}, el('button', { type: 'button', onclick: () => ask(question) },
    el('span', { class: 'example-text' }, question), el('code', {}, tool.name)));
}
