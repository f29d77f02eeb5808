// One answer of the model: text, thinking, calls and notices in the order in
// which they came. What is stored is `message`, plain data; the rest is its view.

import { CallCard, finished, started } from './call.js';
import { announce, copyButton, duration, el, icon } from './dom.js';
import { render } from './markdown.js';

const CUT_SHORT = {
  length: 'The answer was cut off at the model’s length limit.',
  content_filter: 'The answer was cut off by a content filter.',
};

/** Shows `message`, and lets a running answer grow. */
export class Answer {
  #open = null;
  #calls = new Map();
  #began = performance.now();

  constructor(message, { onRetry }) {
    this.message = message;
    this.onRetry = onRetry;
    this.body = el('div', { class: 'answer-body' });
    this.waiting = el('p', { class: 'waiting' }, el('span', {}), el('span', {}), el('span', {}), el('span', { class: 'unseen' }, 'Waiting for the model'));
    this.element = el('article', { class: 'answer', 'aria-label': 'Answer' }, this.body);
  }

  /** Shows an answer that was stored. */
  restore() {
    for (const part of this.message.parts) {
      this.#mount(part);
      this.#close();
    }
    this.#cancelRunning();
    this.#showFoot();
    return this;
  }

  /** From here on chunks come in. */
  begin() {
    this.element.setAttribute('aria-busy', 'true');
    this.element.append(this.waiting);
    return this;
  }

  /** Takes one chunk of the stream. */
  take(chunk) {
    const choice = chunk.choices?.[0];
    if (choice?.delta?.reasoning_content) this.#grow('thinking', choice.delta.reasoning_content);
    // The message of a tool is shown at its call.
    if (choice?.delta?.content && chunk.x_toolrack?.type !== 'message') this.#grow('text', choice.delta.content);
    if (chunk.x_toolrack) this.#event(chunk.x_toolrack);
    if (CUT_SHORT[choice?.finish_reason]) this.#add({ kind: 'notice', text: CUT_SHORT[choice.finish_reason] });
    if (chunk.usage) this.message.tokens = chunk.usage.completion_tokens;
    this.waiting.hidden = this.#busyElsewhere();
  }

  /** Ends a running answer; `error` is a text, or `null`. */
  end({ stopped = false, error = null } = {}) {
    this.#close();
    this.#cancelRunning();
    this.waiting.remove();
    if (error) this.#add({ kind: 'error', text: error });
    else if (stopped) this.#add({ kind: 'notice', text: 'Stopped.' });
    else if (this.message.parts.length === 0) this.#add({ kind: 'notice', text: 'The model gave an empty answer.' });
    this.message.ms = performance.now() - this.#began;
    this.#showFoot();
    this.element.removeAttribute('aria-busy');
  }

  #grow(kind, delta) {
    if (this.#open?.part.kind !== kind) {
      // Models put blank lines between their parts; those start nothing.
      delta = delta.trimStart();
      if (delta === '') return;
      this.#add({ kind, text: '' });
    }
    this.#open.part.text += delta;
    this.#open.view.append(delta);
  }

  #add(part) {
    this.#close();
    this.message.parts.push(part);
    this.#mount(part);
  }

  #mount(part) {
    const view = VIEWS[part.kind]?.(part, this);
    if (!view) return;
    this.body.append(view.element);
    if (part.kind === 'call') this.#calls.set(part.id, view);
    this.#open = { part, view };
  }

  #close() {
    this.#open?.view.close?.();
    this.#open = null;
  }

  #event(event) {
    const card = this.#calls.get(event.id);
    switch (event.type) {
      case 'call_started':
        announce(`${event.name} is running`);
        // A call that is tried again starts a second time.
        if (card?.call.state === 'running') card.update(started(event));
        else this.#add(started(event));
        break;
      case 'call_status':
        if (event.approval) announce(`${card?.call.name ?? event.name} waits for your approval`);
        card?.update({
          message: event.message ?? card.call.message,
          progress: event.progress,
          approval: event.approval ?? null,
          // By this machine's clock, which may be another than the server's.
          answer_by: event.approval ? Date.now() + (event.approval_seconds ?? Infinity) * 1000 : null,
        });
        break;
      case 'call_finished':
        // A call that was refused may finish without having started.
        if (!card) this.#add(started(event));
        announce(`${event.name ?? card?.call.name} ${event.success ? 'is done' : 'failed'}`);
        this.#calls.get(event.id).update(finished(event));
        break;
      case 'notice':
        if (event.message) this.#add({ kind: 'notice', text: event.message });
        break;
    }
  }

  #cancelRunning() {
    for (const card of this.#calls.values()) {
      if (card.call.state === 'running') card.update({ state: 'cancelled', progress: null });
    }
  }

  // Growing text, open thinking and a spinning card already show that something goes on.
  #busyElsewhere() {
    const growing = this.#open?.part.kind === 'text' || this.#open?.part.kind === 'thinking';
    return growing || [...this.#calls.values()].some((card) => card.call.state === 'running');
  }

  #showFoot() {
    const { ms, tokens } = this.message;
    const text = textOf(this.message);
    if (!text) return;
    const facts = [ms ? duration(ms) : null, tokens ? `${tokens.toLocaleString('en')} tokens` : null];
    this.element.append(el('div', { class: 'foot' },
      copyButton(() => text), el('span', {}, facts.filter(Boolean).join(' · '))));
  }
}

/** The text of an answer without thinking and calls, as it is sent back to the model. */
export function textOf(message) {
  return message.parts.filter((part) => part.kind === 'text').map((part) => part.text.trim()).join('\n\n');
}

const VIEWS = {
  text(part) {
    const element = el('div', { class: 'text plain' }, part.text);
    return {
      element,
      append: (delta) => element.firstChild.appendData(delta),
      close: () => render(part.text, element),
    };
  },

  thinking(part) {
    const began = performance.now();
    const title = el('span', {}, 'Thinking…');
    const text = el('div', { class: 'thinking-text' }, part.text);
    const element = el('details', { class: 'thinking', open: part.ms === undefined },
      el('summary', {}, el('span', { class: 'chevron' }, icon('chevron')), title), text);
    return {
      element,
      append: (delta) => text.firstChild.appendData(delta),
      close() {
        part.ms ??= performance.now() - began;
        title.textContent = `Thought for ${duration(Math.max(part.ms, 1000))}`;
        element.classList.add('over');
        element.open = false;
      },
    };
  },

  call: (part) => new CallCard(part),

  notice: (part) => ({ element: el('p', { class: 'notice' }, part.text) }),

  error: (part, answer) => ({
    element: el('div', { class: 'error', role: 'alert' }, el('p', {}, part.text),
      el('button', { type: 'button', class: 'retry', onclick: () => answer.onRetry(answer) }, icon('retry'), el('span', {}, 'Try again'))),
  }),
};
