// The panel with the tools: a column on wide screens, a drawer on narrow ones.

import * as api from './api.js';
import { el, icon, prose } from './dom.js';
import { recall, remember } from './storage.js';

const KEY = 'tools-open';
const wide = matchMedia('(min-width: 68rem)');
const byId = (id) => document.getElementById(id);

/** Loads, lists and filters the tools. */
export class ToolPanel {
  tools = [];

  constructor() {
    this.panel = byId('tools');
    this.list = byId('tools-list');
    this.filter = byId('tools-filter');
    this.toggle = byId('tools-toggle');
    this.filter.addEventListener('input', () => this.#show());
    this.toggle.addEventListener('click', () => this.#set(!this.open));
    byId('tools-close').addEventListener('click', () => this.close());
    byId('backdrop').addEventListener('click', () => this.close());
    wide.addEventListener('change', () => this.#place(wide.matches && recall(KEY, false)));
    this.#place(wide.matches && recall(KEY, false));
  }

  get open() {
    return document.body.classList.contains('tools-open');
  }

  /** Whether the panel lies over the chat and takes the keyboard. */
  get covers() {
    return this.open && !wide.matches;
  }

  /** Closes the panel and puts the focus back where it was opened. */
  close() {
    this.#set(false);
    this.toggle.focus();
  }

  /** Asks the server for the tools; gives those that can be used. */
  async load() {
    try {
      this.tools = await api.tools();
      this.failure = null;
    } catch (error) {
      this.failure = error.message;
    }
    this.#show();
    return this.tools.filter((tool) => tool.enabled);
  }

  #set(open) {
    this.#place(open);
    if (wide.matches) remember(KEY, open);
    if (!open) return;
    this.load();
    // A focused field would bring up the keyboard of a phone.
    (wide.matches ? this.filter : byId('tools-close')).focus();
  }

  #place(open) {
    document.body.classList.toggle('tools-open', open);
    this.toggle.setAttribute('aria-expanded', String(open));
    this.panel.inert = !open;
    byId('app').inert = this.covers;
  }

  #show() {
    const on = this.tools.filter((tool) => tool.enabled).length;
    const count = byId('tools-count');
    count.textContent = String(on);
    count.hidden = this.tools.length === 0;
    byId('tools-summary').textContent = this.failure ? '' : `${on} of ${this.tools.length} ready`;
    if (this.failure) return this.list.replaceChildren(el('p', { class: 'empty', role: 'alert' }, this.failure));
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.tools.filter((tool) => matches(tool, words));
    this.list.replaceChildren(...(found.length > 0 ? groups(found) : [nothing(this.tools.length)]));
  }
}

function nothing(total) {
  return el('p', { class: 'empty' }, total > 0 ? 'No tool matches.' : 'There is no tool yet. Drop a file into tools/ and start the server again.');
}

function matches(tool, words) {
  const text = [tool.name, tool.title, tool.module, tool.description].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

function groups(tools) {
  return [...Map.groupBy(tools, (tool) => tool.module)].map(([module, members]) =>
    el('section', { 'aria-label': `Module ${module}` },
      el('h3', {}, module, el('span', { class: 'count' }, String(members.length))),
      el('ul', {}, ...members.map(entry))));
}

function entry(tool) {
  return el('li', { class: tool.enabled ? 'tool' : 'tool off' },
    el('div', { class: 'tool-head' },
      el('span', { class: 'dot', title: tool.enabled ? 'Ready' : 'Off' }),
      el('code', { class: 'tool-name' }, tool.name),
      badge('level', tool.level, `Callers need the level ${tool.level}`), badge('effect', tool.effect, `Effect: ${tool.effect}`),
      tool.deferred ? badge('deferred', 'deferred', 'Not in the prompt: the model finds it with search_tools') : null),
    tool.title && tool.title !== tool.name ? el('p', { class: 'tool-title' }, tool.title) : null,
    el('p', { class: 'tool-text' }, ...prose(tool.description)),
    tool.enabled ? null : el('p', { class: 'tool-reason' }, ...prose(`Off: ${tool.reason ?? 'no reason given'}`)),
    details(tool));
}

function badge(kind, value, title) {
  return value ? el('span', { class: 'badge', 'data-kind': kind, 'data-value': value, title }, value) : null;
}

function details(tool) {
  const parameters = Object.entries(tool.parameters?.properties ?? {});
  if (parameters.length === 0 && !tool.source) return null;
  const required = new Set(tool.parameters?.required ?? []);
  const label = parameters.length === 1 ? '1 parameter' : `${parameters.length || 'No'} parameters`;
  return el('details', {},
    el('summary', {}, el('span', { class: 'chevron' }, icon('chevron')), el('span', {}, label)),
    el('dl', {}, ...parameters.flatMap(([name, schema]) => parameter(name, schema, required.has(name)))),
    tool.source ? el('p', { class: 'tool-source' }, tool.source) : null);
}

function parameter(name, schema, required) {
  return [
    el('dt', {}, el('code', {}, name), el('span', { class: 'type' }, [typeOf(schema), required ? null : 'optional'].filter(Boolean).join(', '))),
    el('dd', {}, ...prose(schema.description)),
  ];
}

function typeOf(schema) {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.map(typeOf).filter((type) => type !== 'null').join(' | ');
  if (schema.type === 'array') return schema.items ? `list of ${typeOf(schema.items)}` : 'list';
  return [schema.type].flat().filter((type) => type && type !== 'null').join(' | ') || 'any';
}
