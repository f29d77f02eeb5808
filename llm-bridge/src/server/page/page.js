// The chat page: what is on it at the start, and what happens on a question.

import { Answer } from './answer.js';
import * as api from './api.js';
import { DocumentDialog } from './documents.js';
import { announce, el } from './dom.js';
import { onDrop } from './drop.js';
import { forServer, load, save } from './history.js';
import { follow } from './scroll.js';
import { recall, remember } from './storage.js';
import { ToolPanel } from './tools.js';
import { showExamples } from './welcome.js';

const byId = (id) => document.getElementById(id);
const log = byId('log');
const question = byId('question');
const modelSelect = byId('model');
const touch = matchMedia('(pointer: coarse)');

const scroll = follow(byId('scroller'), log, byId('to-end'));
const panel = new ToolPanel();
// With the first document the tools come that search it.
const documents = new DocumentDialog(showTools);

let messages = load();
let running = null;

/** Sends a question and shows the answer as it comes. */
async function ask(text) {
  if (running || !text.trim()) return;
  messages.push({ role: 'user', content: text.trim() });
  log.append(asked(messages.at(-1)));
  await answer();
}

async function answer() {
  const sent = forServer(messages);
  const message = { role: 'assistant', parts: [] };
  messages.push(message);
  const view = new Answer(message, { onRetry: retry }).begin();
  log.append(view.element);
  const controller = new AbortController();
  const done = stream(view, sent, controller.signal);
  running = { controller, done };
  showState();
  focusQuestion();
  scroll.toEnd();
  await done;
  running = null;
  showState();
  save(messages);
}

async function stream(view, sent, signal) {
  try {
    for await (const chunk of api.complete(modelSelect.value || undefined, sent, signal)) view.take(chunk);
    view.end();
    announce('The answer is complete');
  } catch (error) {
    view.end(signal.aborted ? { stopped: true } : { error: error.message });
  }
}

async function stop() {
  running?.controller.abort();
  await running?.done;
}

// Only the last answer offers it, see page.css.
function retry(view) {
  if (running) return;
  messages.pop();
  view.element.remove();
  answer();
}

async function newChat() {
  await stop();
  messages = [];
  log.replaceChildren();
  save(messages);
  showState();
  focusQuestion();
}

function asked(message) {
  return el('article', { class: 'asked', 'aria-label': 'You' }, message.content);
}

// The pressed button is often gone afterwards, and the focus with it. On a
// phone, focus would bring up the keyboard over the answer.
function focusQuestion() {
  if (!touch.matches) question.focus();
}

function showState() {
  byId('welcome').hidden = messages.length > 0;
  byId('new-chat').disabled = messages.length === 0;
  byId('stop').hidden = !running;
  byId('send').hidden = Boolean(running);
  byId('send').disabled = !question.value.trim();
}

function restore() {
  for (const message of messages) {
    log.append(message.role === 'user' ? asked(message) : new Answer(message, { onRetry: retry }).restore().element);
  }
  if (messages.length > 0) scroll.toEnd();
}

function submit(event) {
  event.preventDefault();
  if (running || !question.value.trim()) return;
  const text = question.value;
  question.value = '';
  fitQuestion();
  ask(text);
}

// `field-sizing: content` would do it, but not in every browser yet.
function fitQuestion() {
  question.style.height = 'auto';
  question.style.height = `${question.scrollHeight}px`;
  showState();
}

function onQuestionKey(event) {
  // While a word is composed, Enter belongs to the input method.
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
}

function onEscape(event) {
  // A dialog closes itself.
  if (event.key !== 'Escape' || event.isComposing || document.querySelector('dialog[open]')) return;
  if (panel.covers) panel.close();
  else stop();
}

async function showModels(health) {
  const [names, server] = await Promise.all([api.models().catch(() => []), health.catch(() => ({}))]);
  // The server may be set to a model that the list leaves out.
  if (server.model && !names.includes(server.model)) names.unshift(server.model);
  modelSelect.replaceChildren(...names.map((name) => el('option', { value: name }, name)));
  const chosen = [recall('model'), server.model].find((name) => names.includes(name));
  if (chosen) modelSelect.value = chosen;
  byId('model-field').hidden = names.length < 2;
  byId('model-name').hidden = names.length !== 1;
  byId('model-name').textContent = names[0] ?? '';
}

async function showServer(health) {
  try {
    const { upstream } = await health;
    byId('banner').classList.toggle('demo', upstream === 'demo');
    if (upstream === 'demo') showBanner('This is the built-in demo model. Connect a real one with ', el('code', {}, 'toolrack serve --upstream http://127.0.0.1:8080/v1'));
    else byId('banner').hidden = true;
  } catch (error) {
    byId('banner').classList.remove('demo');
    showBanner(error.message, ' ', el('button', { type: 'button', onclick: connect }, 'Try again'));
  }
}

function showBanner(...content) {
  byId('banner').replaceChildren(el('p', {}, ...content));
  byId('banner').hidden = false;
}

async function showTools() {
  const usable = await panel.load();
  if (!panel.failure) showExamples(usable, ask);
}

async function connect() {
  const health = api.health();
  await Promise.all([showTools(), showModels(health), showServer(health)]);
}

byId('composer').addEventListener('submit', submit);
byId('stop').addEventListener('click', stop);
byId('new-chat').addEventListener('click', newChat);
modelSelect.addEventListener('change', () => remember('model', modelSelect.value));
question.addEventListener('input', fitQuestion);
question.addEventListener('keydown', onQuestionKey);
document.addEventListener('keydown', onEscape);
onDrop(byId('drop'), (files) => documents.add(files));
addEventListener('pagehide', () => save(messages));

restore();
showState();
connect();
